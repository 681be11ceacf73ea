/** How the result of a block joins the residual stream. */
import { invariant } from "../errors.ts";
import type { ActivationKind } from "../kernels/activations.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { matmul } from "../kernels/matmul.ts";
import { rmsNorm } from "../kernels/rms-norm.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { scratchSlice, type Pass } from "./model.ts";

/** The last product of a block. */
export interface Branch {
  readonly w: Matrix;
  readonly bias?: Vector | undefined;
  /** [rowCapacity, w.columns], as `activation` says; nobody else reads it. */
  readonly from: BufferSlice;
  /** As of `Matmul`. */
  readonly activation?: ActivationKind | undefined;
  /** Norm between the product and the stream. */
  readonly postNorm?: Vector | undefined;
  /** Of that norm. */
  readonly epsilon: number;
  /** On the stream behind the sum; only with `postNorm`. */
  readonly factor?: number;
}

/** x += W · from + bias, or x = factor · (x + norm(W · from + bias)) with a norm. */
export function addBranch(context: KernelContext, pass: Pass, branch: Branch): void {
  const { w, bias, from, activation, postNorm, epsilon, factor = 1 } = branch;
  const { step, rowCapacity, deterministic } = pass;
  const rows = { step, rowCapacity };
  const kind = activation && { activation, consumes: true };
  const product = { w, bias, x: from, deterministic, ...kind, ...rows };
  const x = scratchSlice(pass, "x");
  invariant(postNorm !== undefined || factor === 1, `${w.name}: a factor without a norm`);
  if (postNorm === undefined) {
    matmul(context, { ...product, y: x, accumulate: true });
    return;
  }
  const y = scratchSlice(pass, "branch");
  matmul(context, { ...product, y });
  rmsNorm(context, { x: y, weight: postNorm, y: x, epsilon, accumulate: true, factor, ...rows });
}
