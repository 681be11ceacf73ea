/**
 * What products read their activations as: floats, 8-bit codes with steps (packed integer dot
 * products), or halves with a step a row (matrix units), row by row or in tiles. Whoever writes
 * activations asks with the matrix that will read them.
 */
import { product } from "../math.ts";
import type { Matrix } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import type { KernelContext } from "./kernel.ts";
import { suitsDirect } from "./matmul-direct.ts";
import { matrixUnitsOf, suitsMatrixUnits } from "./matrix-units.ts";

export type ActivationKind = "float" | "int8" | "half" | "tile";
/** Of products with chosen experts. */
export type ExpertActivation = Exclude<ActivationKind, "half" | "tile">;

/** Rows of activations up to which `linear` is best: it takes four while it holds a weight. */
export const linearRowsMax = 8;
/** Rows of activations that `matmulDirect` serves best. */
const directRowsMin = 3;
const directRowsMax = 128;
/** Without matrix units: rows up to which reading the weights several times beats tiles. */
const passingRowsMax = 32;

export interface Reader {
  readonly w: Matrix;
  readonly rowCapacity: number;
  /** Results must not depend on the number of rows. */
  readonly deterministic: boolean;
}

/** How the activations for a product have to be written. */
export function activationKind(context: KernelContext, reader: Reader): ActivationKind {
  const { w, rowCapacity, deterministic } = reader;
  const { features } = context.capabilities;
  if (context.force?.activation !== undefined) return context.force.activation;
  if (isDirect(context, reader)) return "tile";
  if (usesMatrixUnits(context, reader)) return "half";
  const plain = w.dtype === "F32" || w.dtype === "F16" || w.dtype === "BF16";
  if (plain || deterministic || !features.integerDotProductAccelerated) return "float";
  return isLinear(context, { w, rowCapacity, deterministic }) ? "int8" : "float";
}

/** Whether the rows are so few that passes over the weights serve all of them. */
export function isLinear(context: KernelContext, reader: Reader): boolean {
  const { rowCapacity, deterministic } = reader;
  if (isDirect(context, reader)) return false;
  if (rowCapacity <= linearRowsMax || deterministic) return true;
  if (usesMatrixUnits(context, reader)) return false;
  return rowCapacity <= passingRowsMax || context.capabilities.kind === "cpu";
}

/** Whether the rows are so many that matrix units serve them best, and few enough to read tiles. */
function isDirect({ capabilities }: KernelContext, reader: Reader): boolean {
  const { w, rowCapacity, deterministic } = reader;
  if (rowCapacity < directRowsMin || rowCapacity > directRowsMax || deterministic) return false;
  return suitsDirect(capabilities, w.dtype, w.columns);
}

/** A processor only plays matrix units. */
function usesMatrixUnits({ capabilities }: KernelContext, reader: Reader): boolean {
  const { w, rowCapacity, deterministic } = reader;
  if (rowCapacity <= linearRowsMax || deterministic || capabilities.kind === "cpu") return false;
  return suitsMatrixUnits(w.dtype, w.columns) && matrixUnitsOf(capabilities) !== undefined;
}

/** Codes and steps of [rows, width] int8 activations within the memory that would hold floats. */
export function codesIn(memory: BufferSlice, rows: number, width: number): BufferSlice {
  return subslice(memory, 0, product([rows, width]));
}

export function stepsIn(memory: BufferSlice, rows: number, width: number): BufferSlice {
  return subslice(memory, product([rows, width]), product([rows, width / 2]));
}

/** Steps of [rows, width] tiles within that memory, behind the halves. */
export function tileStepsIn(memory: BufferSlice, rows: number, width: number): BufferSlice {
  return subslice(memory, product([rows, width, 2]), product([rows, 4]));
}

/** The same as `activationKind` for the experts of a mixture, which read rows one by one. */
export function expertActivation(context: KernelContext, reader: Reader): ExpertActivation {
  const kind = activationKind(context, { ...reader, rowCapacity: 1 });
  return kind === "int8" && reader.w.columns % 32 === 0 ? "int8" : "float";
}
