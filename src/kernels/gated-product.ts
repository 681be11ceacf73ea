/** The first half of a gated feed-forward: normalization, gate and up products, activation. */
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import type { KernelContext } from "./kernel.ts";
import { normedProducts, normedProductsFloats } from "./normed-products.ts";
import { swiglu, type Activation } from "./swiglu.ts";

export interface GatedProduct {
  /** [rowCapacity, width] */
  readonly x: BufferSlice;
  readonly norm: Vector;
  readonly epsilon: number;
  readonly gate: Matrix;
  readonly up: Matrix;
  /** [rowCapacity, gate.rows], written. */
  readonly y: BufferSlice;
  /** Scratch of `gatedProductFloats` floats a row. */
  readonly workspace: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly deterministic: boolean;
  /** Of the gate; SiLU by default. */
  readonly activation?: Activation;
}

/** Floats of workspace a row. */
export function gatedProductFloats(width: number, feedForward: number): number {
  return normedProductsFloats(width) + feedForward;
}

/** y = f(Gate · norm(x)) ⊙ (Up · norm(x)) */
export function gatedProduct(context: KernelContext, args: GatedProduct): void {
  const { gate, up, y, workspace, activation = "silu", ...input } = args;
  const { rowCapacity, step } = input;
  const width = gate.rows;
  const first = rowCapacity * normedProductsFloats(gate.columns) * 4;
  const upY = subslice(workspace, first, rowCapacity * width * 4);
  normedProducts(context, {
    ...input,
    workspace,
    products: [
      { w: gate, y },
      { w: up, y: upY },
    ],
  });
  swiglu(context, { gate: y, up: upY, y, step, rowCapacity, width, activation });
}
