/** Products of experts with the rows that chose them, sorted by expert, on matrix units. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { tileCapacityOf } from "./expert-order.ts";
import {
  expertFields,
  expertParameters,
  expertResults,
  type ExpertProduct,
} from "./expert-product.ts";
import { gateNumber } from "./gate.ts";
import { defineKernel, launch, type KernelContext } from "./kernel.ts";

import type { MatrixUnits } from "./matrix-units.ts";
import type { ShaderName } from "./shaders.ts";
import { unitValues } from "./unit-values.ts";

export const expertMatmulKernel = defineKernel("expert_matmul", expertFields);

/** How the work is laid out; results differ only in rounding. */
export interface ExpertTuning {
  /** Results of a workgroup for each of its choices; of gate and up as many each. */
  readonly tileRows: number;
  /** Results of each of its subgroups, and choices. */
  readonly partRows: number;
  readonly partColumns: number;
  /** Values of the inner dimension in shared memory at a time. */
  readonly slice: number;
}

/** Choices of a tile: about as many as an expert gets, for that many read its weights once. */
export function expertTile(choice: {
  readonly experts: number;
  readonly slots: number;
  readonly rowCapacity: number;
}): number {
  const { experts, slots, rowCapacity } = choice;
  const even = (rowCapacity * slots) / experts;
  return even <= 4 ? 16 : even <= 16 ? 32 : 64;
}

export function expertMatmul(
  context: KernelContext,
  units: MatrixUnits,
  product: ExpertProduct,
  tuning: ExpertTuning = defaultTuning(context, units, product),
): void {
  const { w, bias, gated, tile } = product;
  const { tileRows, partRows, partColumns, slice } = tuning;
  invariant(slice % unitValues(w.dtype) === 0, `${w.name}: slices of ${slice} values`);
  const bytes = sharedBytes(units, product, tuning);
  const { sharedMemoryBytes } = context.capabilities.limits;
  invariant(bytes <= sharedMemoryBytes, `${w.name}: ${bytes} bytes of shared memory`);
  launch(context, expertMatmulKernel, {
    shader: `expert_matmul.${w.dtype}` as ShaderName,
    constants: [
      subgroupsOf(product, tuning) * units.lanes,
      units.lanes,
      tileRows,
      tile,
      partRows,
      partColumns,
      slice,
      units.rows,
      units.columns,
      units.depth,
      gated === undefined ? 0 : 1,
      gateNumber(gated?.gate ?? "silu"),
      bias === undefined ? 0 : 1,
    ],
    subgroupSize: units.subgroupSize,
    parameters: expertParameters(product),
    groups: [tileCapacityOf(product), ceilDiv(expertResults(product), tileRows)],
    label: w.name,
  });
}

/** From the one that shares most to the one that needs least. */
const tileRowsWanted = { gated: [64, 32, 16], plain: [128, 64, 32, 16] } as const;
const subgroupsMax = 4;

/** Subgroups one above the other, each with all choices: what few rows leave out is even then. */
function defaultTuning(
  { capabilities }: KernelContext,
  units: MatrixUnits,
  product: ExpertProduct,
): ExpertTuning {
  const { tile } = product;
  const tunings = tileRowsWanted[product.gated === undefined ? "plain" : "gated"].map(
    (tileRows) => ({
      tileRows,
      partRows: Math.max(units.rows, tileRows / subgroupsMax),
      partColumns: tile,
      slice: 64,
    }),
  );
  const tuning = tunings.find(
    (each) => sharedBytes(units, product, each) <= capabilities.limits.sharedMemoryBytes,
  );
  invariant(tuning !== undefined, `${product.w.name}: no tile fits`);
  return tuning;
}

function subgroupsOf(
  { tile }: Pick<ExpertProduct, "tile">,
  { tileRows, partRows, partColumns }: ExpertTuning,
): number {
  return (tileRows / partRows) * (tile / partColumns);
}

function sharedBytes(units: MatrixUnits, product: ExpertProduct, tuning: ExpertTuning): number {
  const { tile, gated } = product;
  const { tileRows, partColumns, slice } = tuning;
  const rows = gated === undefined ? tileRows : 2 * tileRows;
  const subgroups = subgroupsOf(product, tuning);
  invariant(subgroups * units.lanes <= 1024, `${subgroups} subgroups of ${units.lanes}`);
  const innerChunks = (rows + tile) * (slice / 8 + 1);
  const stripChunks = (tile / partColumns) * units.columns * (rows / 4 + 1);
  const patchBytes = subgroups * units.rows * units.columns * 4;
  return Math.max(innerChunks, stripChunks) * 16 + tile * 8 + patchBytes;
}
