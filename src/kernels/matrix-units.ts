/** The matrix units of a device (VK_KHR_cooperative_matrix), as far as products use them. */
import type { DType } from "../tensor/dtype.ts";
import type { Capabilities } from "../vulkan/capabilities.ts";
import { nvidia } from "./vendors.ts";

export interface MatrixUnits {
  /** Of a fragment: rows and columns of results, and the depth of the sum. */
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  /** Invocations of the subgroup that holds a fragment. */
  readonly lanes: number;
  /** To be asked for when the pipeline is made; undefined where the device has only one size. */
  readonly subgroupSize: number | undefined;
}

/** Sixteen values of a row of weights lie next to each other, whatever their type. */
const depthMax = 16;

/**
 * The shape with halves as operands and floats as sums that products use; undefined without one.
 * Of several the one nearest to a cube of 16, which every vendor has tuned. Drivers that have
 * several sizes of subgroups bind shapes to the smallest.
 */
export function matrixUnitsOf(capabilities: Capabilities): MatrixUnits | undefined {
  const { cooperativeMatrices, features, subgroup } = capabilities;
  const { minSize, maxSize, sizeControl } = subgroup;
  const isCertain = sizeControl || minSize === maxSize;
  if (!features.float16 || !features.memoryModel || !isCertain) return undefined;
  const shapes = cooperativeMatrices
    .filter(({ operands, accumulator }) => operands === "f16" && accumulator === "f32")
    .filter(({ m, n, k }) => Math.max(m, n, k) <= depthMax && isPowerOfTwo(m * n * k) && k >= 8)
    .toSorted((a, b) => b.m * b.n * b.k - a.m * a.n * a.k);
  const [shape] = shapes;
  if (shape === undefined) return undefined;
  const { m: rows, n: columns, k: depth } = shape;
  return {
    rows,
    columns,
    depth,
    lanes: minSize,
    subgroupSize: sizeControl ? minSize : undefined,
  };
}

/** Whether products of matrices of this type and width can be left to them. */
export function suitsMatrixUnits(dtype: DType, width: number): boolean {
  return dtype !== "F32" && width % depthMax === 0;
}

/** Whether a subgroup's registers have room for 16 fragments of sums; on AMD they would spill. */
export function holdsManySums({ vendorId }: Capabilities): boolean {
  return vendorId === nvidia;
}

function isPowerOfTwo(value: number): boolean {
  return Number.isInteger(Math.log2(value));
}
