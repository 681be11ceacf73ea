/** What every block begins with: RMS normalization, and several products of the normalized rows. */
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import type { KernelContext } from "./kernel.ts";
import { matmul } from "./matmul.ts";
import { rmsNorm } from "./rms-norm.ts";

export interface Product {
  readonly w: Matrix;
  readonly bias?: Vector | undefined;
  /** [rowCapacity, w.rows], written. */
  readonly y: BufferSlice;
}

export interface NormedProducts {
  /** [rowCapacity, width] */
  readonly x: BufferSlice;
  readonly norm: Vector;
  readonly epsilon: number;
  readonly products: readonly Product[];
  /** Scratch of `normedProductsFloats` floats a row. */
  readonly workspace: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly deterministic: boolean;
}

/** Floats of workspace a row. */
export function normedProductsFloats(width: number): number {
  return width;
}

/** y = W · norm(x) + bias, for each product. */
export function normedProducts(context: KernelContext, args: NormedProducts): void {
  const { x, norm, epsilon, products, workspace, ...rows } = args;
  const normed = subslice(workspace, 0, rows.rowCapacity * norm.length * 4);
  rmsNorm(context, { x, weight: norm, y: normed, epsilon, ...rows });
  for (const { w, bias, y } of products) matmul(context, { w, bias, x: normed, y, ...rows });
}
