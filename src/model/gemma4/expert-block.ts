/**
 * Gemma 4's mixture of experts: a feed-forward block that takes every row and, beside it, experts,
 * with norms of their own on either side; the router reads the stream through a norm of its own.
 */
import { experts, type ExpertWeights } from "../../kernels/experts.ts";
import { gatedProduct } from "../../kernels/gated-product.ts";
import type { KernelContext } from "../../kernels/kernel.ts";
import { matmul } from "../../kernels/matmul.ts";
import { rmsNorm } from "../../kernels/rms-norm.ts";
import { invariant } from "../../errors.ts";
import type { Vector } from "../../tensor/tensor.ts";
import type { FeedForward } from "../feed-forward.ts";
import { declareExperts, type MixtureShape } from "../mixture.ts";
import { counterOf, scratchSlice, type Pass } from "../model.ts";
import type { Weights } from "../weights.ts";

export interface ExpertBlock {
  /** Of what the experts read. */
  readonly norm: Vector;
  readonly experts: ExpertWeights;
  /** Of what they give, and of what the feed-forward block gives. */
  readonly postNorm: Vector;
  readonly feedForwardPostNorm: Vector;
}

export function declareExpertBlock(
  weights: Weights,
  prefix: string,
  width: number,
  shape: MixtureShape,
): ExpertBlock {
  const norm = (name: string) => weights.vector(`${prefix}.${name}.weight`, width);
  const { experts: count } = shape.routing;
  return {
    norm: norm("pre_ffw_norm_2"),
    experts: {
      ...declareExperts(weights, prefix, width, shape),
      routerNorm: {
        weight: weights.vector(`${prefix}.ffn_gate_inp.scale`, width),
        factor: 1 / Math.sqrt(width),
      },
      factors: weights.optionalVector(`${prefix}.ffn_down_exps.scale`, count),
    },
    postNorm: norm("post_ffw_norm_2"),
    feedForwardPostNorm: norm("post_ffw_norm_1"),
  };
}

interface ExpertBlockUse {
  readonly layer: FeedForward;
  readonly experts: ExpertBlock;
  readonly epsilon: number;
  /** On the stream behind the sum. */
  readonly factor: number;
}

/** x = factor · (x + norm(norm(FeedForward(norm(x))) + norm(Experts(norm(x))))) */
export function expertBlock(context: KernelContext, pass: Pass, use: ExpertBlockUse): void {
  const { layer, experts: block, epsilon, factor } = use;
  const { step, rowCapacity, workspace, deterministic } = pass;
  const rows = { step, rowCapacity };
  const x = scratchSlice(pass, "x");
  const [gated, branch, mixed] = [
    scratchSlice(pass, "gated"),
    scratchSlice(pass, "branch"),
    scratchSlice(pass, "mixed"),
  ];
  const { norm, gate, up, down: w, postNorm } = layer;
  const shared = { epsilon, workspace, deterministic, ...rows };
  const product = { x, norm, gate, up, gateFunction: "gelu", y: gated, reader: w } as const;
  gatedProduct(context, { ...product, ...shared });
  matmul(context, { w, x: gated, y: branch, deterministic, ...rows });
  rmsNorm(context, { x: branch, weight: block.feedForwardPostNorm, y: branch, epsilon, ...rows });
  const counter = counterOf(pass);
  experts(context, { x, y: mixed, norm: block.norm, weights: block.experts, counter, ...shared });
  const sum = { accumulate: true, epsilon, ...rows };
  rmsNorm(context, { x: mixed, weight: block.postNorm, y: branch, ...sum });
  invariant(postNorm !== undefined, "Gemma 4 has a norm behind each block");
  rmsNorm(context, { x: branch, weight: postNorm, y: x, factor, ...sum });
}
