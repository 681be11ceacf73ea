/** The gated feed-forward block (Shazeer 2020, arXiv 2002.05202). */
import { gatedProduct } from "../kernels/gated-product.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import type { GateFunction } from "../kernels/gate.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { scratchSlice, type Pass } from "./model.ts";
import { addBranch } from "./residual.ts";
import type { Weights } from "./weights.ts";

export interface FeedForward {
  readonly norm: Vector;
  readonly gate: Matrix;
  readonly up: Matrix;
  readonly down: Matrix;
  readonly postNorm: Vector | undefined;
}

export interface FeedForwardExtras {
  readonly postNorm?: boolean;
  /** Gate and up are one tensor: gate's rows first. */
  readonly fused?: boolean;
}

export function declareFeedForward(
  weights: Weights,
  prefix: string,
  width: number,
  inner: number,
  { postNorm = false, fused = false }: FeedForwardExtras = {},
): FeedForward {
  const matrix = (name: string, rows: number, columns: number) =>
    weights.matrix(`${prefix}.${name}.weight`, rows, columns);
  const half = (first: number) =>
    weights.matrixRows(`${prefix}.ffn_up.weight`, 2 * inner, width, first, inner);
  return {
    norm: weights.vector(`${prefix}.ffn_norm.weight`, width),
    gate: fused ? half(0) : matrix("ffn_gate", inner, width),
    up: fused ? half(inner) : matrix("ffn_up", inner, width),
    down: matrix("ffn_down", width, inner),
    postNorm: postNorm ? weights.vector(`${prefix}.post_ffw_norm.weight`, width) : undefined,
  };
}

export interface FeedForwardUse {
  readonly layer: FeedForward;
  readonly epsilon: number;
  readonly gateFunction?: GateFunction;
  /** As of `Branch`. */
  readonly factor?: number;
}

/** x += Down · (f(Gate · h) ⊙ (Up · h)) with h = norm(x) */
export function feedForward(
  context: KernelContext,
  pass: Pass,
  { layer, epsilon, gateFunction, factor = 1 }: FeedForwardUse,
): void {
  const { step, rowCapacity, workspace, deterministic } = pass;
  const { norm, gate, up, down: w, postNorm } = layer;
  const gated = scratchSlice(pass, "gated");
  gatedProduct(context, {
    x: scratchSlice(pass, "x"),
    norm,
    epsilon,
    gate,
    up,
    gateFunction,
    y: gated,
    reader: w,
    workspace,
    step,
    rowCapacity,
    deterministic,
  });
  addBranch(context, pass, { w, from: gated, postNorm, epsilon, factor });
}
