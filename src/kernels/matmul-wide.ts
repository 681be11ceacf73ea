/** Products with many rows of activations on matrix units. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { defineKernel, launch, type KernelContext } from "./kernel.ts";
import type { HalvesProduct } from "./matmul-halves.ts";
import { holdsManySums, type MatrixUnits } from "./matrix-units.ts";
import { productFields, productParameters } from "./product-parameters.ts";
import type { ShaderName } from "./shaders.ts";
import { unitValues } from "./unit-values.ts";

export const matmulWideKernel = defineKernel("matmul_wide", productFields);

/** How the work is laid out; results differ only in rounding. */
export interface WideTuning {
  /** Results of a workgroup. */
  readonly tileRows: number;
  readonly tileColumns: number;
  /** Results of each of its subgroups. */
  readonly partRows: number;
  readonly partColumns: number;
  /** Values of the inner dimension in shared memory at a time. */
  readonly slice: number;
}

/** From the one that shares most to the one that spreads most. */
const tunings: readonly WideTuning[] = [
  { tileRows: 128, tileColumns: 128, partRows: 64, partColumns: 64, slice: 64 },
  { tileRows: 128, tileColumns: 128, partRows: 64, partColumns: 32, slice: 64 },
  { tileRows: 64, tileColumns: 128, partRows: 32, partColumns: 64, slice: 64 },
  { tileRows: 64, tileColumns: 64, partRows: 32, partColumns: 32, slice: 64 },
  { tileRows: 64, tileColumns: 32, partRows: 16, partColumns: 32, slice: 64 },
  { tileRows: 64, tileColumns: 16, partRows: 16, partColumns: 16, slice: 64 },
];

/** Sums of a subgroup that leave enough registers everywhere. */
const sumsMax = 64 * 32;

/** Subgroups that fill a large GPU, four for each multiprocessor or more. */
const subgroupsWanted = 640;

export function matmulWide(
  context: KernelContext,
  units: MatrixUnits,
  product: HalvesProduct,
  tuning: WideTuning = defaultTuning(context, units, product),
): void {
  const { w, rowCapacity } = product;
  const { tileRows, tileColumns, partRows, partColumns, slice } = tuning;
  const subgroups = subgroupsOf(tuning);
  invariant(slice % unitValues(w.dtype) === 0, `matmul ${w.name}: slices of ${slice} values`);
  const bytes = sharedBytes(units, tuning);
  const { sharedMemoryBytes } = context.capabilities.limits;
  invariant(bytes <= sharedMemoryBytes, `matmul ${w.name}: ${bytes} bytes of shared memory`);
  launch(context, matmulWideKernel, {
    shader: `matmul_wide.${w.dtype}` as ShaderName,
    constants: [
      subgroups * units.lanes,
      units.lanes,
      tileRows,
      tileColumns,
      partRows,
      partColumns,
      slice,
      units.rows,
      units.columns,
      units.depth,
    ],
    subgroupSize: units.subgroupSize,
    parameters: productParameters(product),
    // Neighbours share weights.
    groups: [ceilDiv(rowCapacity, tileColumns), ceilDiv(w.rows, tileRows)],
    label: w.name,
  });
}

/** The largest tiles that no column leaves half empty and that give everyone something to do. */
function defaultTuning(
  { capabilities }: KernelContext,
  units: MatrixUnits,
  { w, rowCapacity }: HalvesProduct,
): WideTuning {
  const fitting = tunings.filter(
    (tuning) =>
      sharedBytes(units, tuning) <= capabilities.limits.sharedMemoryBytes &&
      (tuning.partRows * tuning.partColumns <= sumsMax || holdsManySums(capabilities)) &&
      (tuning.tileColumns <= rowCapacity || tuning.tileColumns === 16),
  );
  const subgroups = (tuning: WideTuning) =>
    ceilDiv(w.rows, tuning.tileRows) *
    ceilDiv(rowCapacity, tuning.tileColumns) *
    subgroupsOf(tuning);
  const columns = Math.max(...fitting.map(({ tileColumns }) => tileColumns));
  const spread = fitting.filter(({ tileColumns }) => tileColumns >= Math.min(columns, 64));
  const chosen = spread.find((tuning) => subgroups(tuning) >= subgroupsWanted) ?? spread.at(-1);
  invariant(chosen !== undefined, `matmul ${w.name}: no tile fits`);
  return chosen;
}

/** Of a workgroup. */
function subgroupsOf({ tileRows, tileColumns, partRows, partColumns }: WideTuning): number {
  return (tileRows / partRows) * (tileColumns / partColumns);
}

function sharedBytes({ columns, lanes }: MatrixUnits, tuning: WideTuning): number {
  const { tileRows, tileColumns, partRows, slice } = tuning;
  const subgroups = subgroupsOf(tuning);
  invariant(subgroups * lanes <= 1024, `${subgroups} subgroups of ${lanes}`);
  const tiles = (tileRows + tileColumns) * (slice / 8 + 1) * 16;
  return Math.max(tiles, subgroups * partRows * columns * 4);
}
