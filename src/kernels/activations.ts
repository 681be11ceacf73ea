/**
 * What products read their activations as: floats, or 8-bit codes with steps (packed integer dot
 * products). Whoever writes activations asks with the matrix that will read them.
 */
import { product } from "../math.ts";
import type { Matrix } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import type { KernelContext } from "./kernel.ts";

export type ActivationKind = "float" | "int8";

/** Rows of activations up to which weights are read once for all of them (`linear`). */
export const linearRowsMax = 8;

export interface Reader {
  readonly w: Matrix;
  readonly rowCapacity: number;
  /** Results must not depend on the number of rows. */
  readonly deterministic: boolean;
}

/** How the activations for a product have to be written. */
export function activationKind(context: KernelContext, reader: Reader): ActivationKind {
  const { w, rowCapacity, deterministic } = reader;
  const { features, kind } = context.capabilities;
  if (context.force?.activation !== undefined) return context.force.activation;
  const plain = w.dtype === "F32" || w.dtype === "F16" || w.dtype === "BF16";
  if (plain || deterministic || !features.integerDotProductAccelerated) return "float";
  return rowCapacity <= linearRowsMax || kind === "cpu" ? "int8" : "float";
}

/** Codes and steps of [rows, width] int8 activations within the memory that would hold floats. */
export function codesIn(memory: BufferSlice, rows: number, width: number): BufferSlice {
  return subslice(memory, 0, product([rows, width]));
}

export function stepsIn(memory: BufferSlice, rows: number, width: number): BufferSlice {
  return subslice(memory, product([rows, width]), product([rows, width / 2]));
}
