/** The parameters that all products of a matrix with prepared rows share, and their order. */
import type { Matrix, Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { matrix, reads, updates } from "./kernel.ts";
import { productFlags } from "./product-flags.ts";

export const productFields = {
  w: matrix,
  x: reads,
  y: updates,
  bias: reads,
  rowSwitch: reads,
  step: reads,
  rows: u32,
  width: u32,
  flags: u32,
} as const;

export function productParameters(product: {
  readonly w: Matrix;
  readonly x: BufferSlice;
  readonly y: BufferSlice;
  readonly bias?: Vector | undefined;
  readonly rowSwitch?: BufferSlice | undefined;
  readonly step: BufferSlice;
  readonly accumulate?: boolean | undefined;
  readonly outputs?: boolean | undefined;
}) {
  const { w, x, y, bias, rowSwitch, step } = product;
  return {
    ...{ w, x, y, step, rows: w.rows, width: w.columns, flags: productFlags(product) },
    ...(bias && { bias: bias.data }),
    ...(rowSwitch && { rowSwitch }),
  };
}
