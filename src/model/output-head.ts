/** From the residual stream to logits. */
import type { KernelContext } from "../kernels/kernel.ts";
import { matmul } from "../kernels/matmul.ts";
import { normedProducts } from "../kernels/normed-products.ts";
import { rmsNorm } from "../kernels/rms-norm.ts";
import { softCap } from "../kernels/soft-cap.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { scratchSlice, type Pass } from "./model.ts";
import type { Weights } from "./weights.ts";

export interface OutputHead {
  readonly norm: Vector;
  readonly output: Matrix;
}

/** Small models share the table of the embedding with the head. */
export function declareOutputHead(
  weights: Weights,
  { width, vocabularySize }: { width: number; vocabularySize: number },
  normName = "output_norm.weight",
): OutputHead {
  const name = weights.has("output.weight") ? "output.weight" : "token_embd.weight";
  return {
    norm: weights.vector(normName, width),
    output: weights.matrix(name, vocabularySize, width),
  };
}

export interface OutputHeadUse {
  readonly head: OutputHead;
  readonly epsilon: number;
  /** On the logits; 1 by default. */
  readonly factor?: number;
  /** Soft cap on the logits. */
  readonly cap?: number | undefined;
}

/** hidden = norm(x), of all rows, if the pass wants them: for embeddings, or to guess from. */
export function hiddenStates(
  context: KernelContext,
  { step, rowCapacity, workspace, hidden, hiddenReadback }: Pass,
  { x, norm, epsilon }: { x: BufferSlice; norm: Vector; epsilon: number },
): void {
  if (hidden === undefined && hiddenReadback === undefined) return;
  const y = subslice(hidden ?? workspace, 0, rowCapacity * norm.length * 4);
  rmsNorm(context, { x, weight: norm, y, epsilon, step, rowCapacity });
  if (hiddenReadback !== undefined) context.program.copy(y, hiddenReadback);
}

/** logits = Output · norm(x), of the rows whose logits are wanted. */
export function outputHead(
  context: KernelContext,
  pass: Pass,
  { head, epsilon, factor = 1, cap }: OutputHeadUse,
): void {
  const { step, outputCapacity, logits, workspace, deterministic } = pass;
  const { norm, output: w } = head;
  const x = scratchSlice(pass, "x");
  hiddenStates(context, pass, { x, norm, epsilon });
  if (outputCapacity === 0) return;
  const rows = { step, rowCapacity: outputCapacity };
  if (factor === 1) {
    const products = [{ w, y: logits }];
    const use = { x, norm, epsilon, products, outputs: true };
    normedProducts(context, { ...use, workspace, deterministic, ...rows });
  } else {
    const y = subslice(workspace, 0, outputCapacity * norm.length * 4);
    rmsNorm(context, { x, weight: norm, y, epsilon, factor, gather: true, ...rows });
    const product = { w, x: y, activation: "float", consumes: true } as const;
    matmul(context, { ...product, y: logits, outputs: true, deterministic, ...rows });
  }
  if (cap === undefined) return;
  softCap(context, { y: logits, step, outputCapacity, width: head.output.rows, cap });
}
