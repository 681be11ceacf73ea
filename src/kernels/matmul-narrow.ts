/** Products with a few rows of activations on matrix units: each weight is read once. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { defineKernel, launch, type KernelContext } from "./kernel.ts";
import type { HalvesProduct } from "./matmul-halves.ts";
import type { MatrixUnits } from "./matrix-units.ts";
import { productFields, productParameters } from "./product-parameters.ts";
import type { ShaderName } from "./shaders.ts";
import { unitValues } from "./unit-values.ts";

export const matmulNarrowKernel = defineKernel("matmul_narrow", productFields);

/** How the work is laid out; results differ only in rounding. */
export interface NarrowTuning {
  /** Results of a workgroup. */
  readonly rows: number;
  readonly columns: number;
  /** Subgroups that share the inner dimension. */
  readonly subgroups: number;
  /** Values of the inner dimension that a subgroup takes at a time. */
  readonly slice: number;
}

/** Rows of activations up to which it is chosen, in whole fragments. */
const narrowRowsMax = 64;

/** Whether the rows are whole fragments: they are read without looking. */
export function isNarrow({ columns }: MatrixUnits, rowCapacity: number): boolean {
  const isWhole = rowCapacity % 16 === 0 && rowCapacity % columns === 0;
  return rowCapacity <= narrowRowsMax && isWhole;
}

export function matmulNarrow(
  context: KernelContext,
  units: MatrixUnits,
  product: HalvesProduct,
  tuning: NarrowTuning = defaultTuning(context, units, product),
): void {
  const { w, rowCapacity } = product;
  const { rows, columns, subgroups, slice } = tuning;
  invariant(rowCapacity % columns === 0, `matmul ${w.name}: ${rowCapacity} rows in ${columns}`);
  invariant(slice % unitValues(w.dtype) === 0, `matmul ${w.name}: slices of ${slice} values`);
  const bytes = sharedBytes(units, tuning);
  const { sharedMemoryBytes } = context.capabilities.limits;
  invariant(bytes <= sharedMemoryBytes, `matmul ${w.name}: ${bytes} bytes of shared memory`);
  launch(context, matmulNarrowKernel, {
    shader: `matmul_narrow.${w.dtype}` as ShaderName,
    constants: [
      subgroups * units.lanes,
      units.lanes,
      rows,
      columns,
      slice,
      units.rows,
      units.columns,
      units.depth,
    ],
    subgroupSize: units.subgroupSize,
    parameters: productParameters(product),
    groups: [ceilDiv(rowCapacity, columns), ceilDiv(w.rows, rows)],
    label: w.name,
  });
}

function defaultTuning(
  { capabilities }: KernelContext,
  units: MatrixUnits,
  { rowCapacity }: HalvesProduct,
): NarrowTuning {
  const columns = [64, 32, 16].find((count) => rowCapacity % count === 0) ?? units.columns;
  const tuning = { rows: 32, columns, slice: 64 };
  const subgroups = [8, 4, 2, 1].find(
    (count) =>
      sharedBytes(units, { ...tuning, subgroups: count }) <= capabilities.limits.sharedMemoryBytes,
  );
  invariant(subgroups !== undefined, "no tile fits");
  return { ...tuning, subgroups };
}

function sharedBytes({ columns }: MatrixUnits, tuning: NarrowTuning): number {
  const { rows, subgroups, slice } = tuning;
  return subgroups * Math.max(rows * (slice / 8 + 1) * 16, rows * columns * 4);
}
