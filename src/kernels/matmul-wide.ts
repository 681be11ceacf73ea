/** Products with many rows of activations on matrix units. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { defineKernel, launch, type KernelContext } from "./kernel.ts";
import { unitValues } from "./linear.ts";
import type { HalvesProduct } from "./matmul-halves.ts";
import type { MatrixUnits } from "./matrix-units.ts";
import { productFields, productParameters } from "./product-parameters.ts";
import type { ShaderName } from "./shaders.ts";

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
  { tileRows: 128, tileColumns: 128, partRows: 64, partColumns: 32, slice: 64 },
  { tileRows: 64, tileColumns: 128, partRows: 32, partColumns: 64, slice: 64 },
  { tileRows: 128, tileColumns: 64, partRows: 64, partColumns: 32, slice: 64 },
  { tileRows: 64, tileColumns: 64, partRows: 32, partColumns: 32, slice: 64 },
  { tileRows: 64, tileColumns: 32, partRows: 16, partColumns: 32, slice: 64 },
  { tileRows: 64, tileColumns: 16, partRows: 16, partColumns: 16, slice: 64 },
];

/** Workgroups that fill a large GPU, two for each multiprocessor. */
const workgroupsWanted = 256;

export function matmulWide(
  context: KernelContext,
  units: MatrixUnits,
  product: HalvesProduct,
  tuning: WideTuning = defaultTuning(context, units, product),
): void {
  const { w, rowCapacity } = product;
  const { tileRows, tileColumns, partRows, partColumns, slice } = tuning;
  const subgroups = (tileRows / partRows) * (tileColumns / partColumns);
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
      (tuning.tileColumns <= rowCapacity || tuning.tileColumns === 16),
  );
  const workgroups = ({ tileRows, tileColumns }: WideTuning) =>
    ceilDiv(w.rows, tileRows) * ceilDiv(rowCapacity, tileColumns);
  const columns = Math.max(...fitting.map(({ tileColumns }) => tileColumns));
  const spread = fitting.filter(({ tileColumns }) => tileColumns >= Math.min(columns, 64));
  const chosen = spread.find((tuning) => workgroups(tuning) >= workgroupsWanted) ?? spread.at(-1);
  invariant(chosen !== undefined, `matmul ${w.name}: no tile fits`);
  return chosen;
}

function sharedBytes({ columns, lanes }: MatrixUnits, tuning: WideTuning): number {
  const { tileRows, tileColumns, partRows, partColumns, slice } = tuning;
  const subgroups = (tileRows / partRows) * (tileColumns / partColumns);
  invariant(subgroups * lanes <= 1024, `${subgroups} subgroups of ${lanes}`);
  const tiles = (tileRows + tileColumns) * (slice / 8 + 1) * 16;
  return Math.max(tiles, subgroups * partRows * columns * 4);
}
