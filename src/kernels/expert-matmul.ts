/** Products of experts with the rows that chose them, sorted by expert, on matrix units. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { tileCapacityOf } from "./expert-order.ts";
import { gateNumber, type GateFunction } from "./gate.ts";
import { defineKernel, launch, matrix, reads, writes, type KernelContext } from "./kernel.ts";
import { unitValues } from "./linear.ts";
import { suitsMatrixUnits, type MatrixUnits } from "./matrix-units.ts";
import type { ShaderName } from "./shaders.ts";

export const expertMatmulKernel = defineKernel("expert_matmul", {
  w: matrix,
  up: matrix,
  x: reads,
  y: writes,
  bias: reads,
  upBias: reads,
  order: reads,
  sharing: u32,
  rows: u32,
  expertRows: u32,
  upRow: u32,
  width: u32,
});

export interface ExpertMatmul {
  /** [experts · rows, width], or [experts · (gate rows | up rows), width]. */
  readonly w: Matrix;
  /** As many values as `w` has rows. */
  readonly bias?: Vector | undefined;
  /** `w` is a gate, and what leaves is gated: y = f(W · x) ⊙ (Up · x). */
  readonly gated?: {
    readonly gate: GateFunction;
    /** Of the type and shape of `w`; rows of `w` itself without. */
    readonly up?: Matrix | undefined;
    readonly bias?: Vector | undefined;
  };
  readonly experts: number;
  /** [rowCapacity, width] or, with `apart`, [rowCapacity, slots, width], as `halve` leaves them. */
  readonly x: BufferSlice;
  /** Each choice has a row of `x` of its own. */
  readonly apart?: boolean;
  /** [rowCapacity, slots, rows], written. */
  readonly y: BufferSlice;
  /** From `expertOrder` with tiles of `tile` choices. */
  readonly order: BufferSlice;
  readonly tile: number;
  /** Experts of a row. */
  readonly slots: number;
  readonly rowCapacity: number;
}

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
  product: ExpertMatmul,
  tuning: ExpertTuning = defaultTuning(context, units, product),
): void {
  const { w, bias, gated, experts, x, apart = false, y, order, tile, slots } = product;
  const { up = w, gate = "silu", bias: upBias = bias } = gated ?? {};
  const { tileRows, partRows, partColumns, slice } = tuning;
  const expertRows = w.rows / experts;
  const isMerged = gated !== undefined && gated.up === undefined;
  const rows = isMerged ? expertRows / 2 : expertRows;
  check(context, units, product, tuning);
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
      gateNumber(gate),
      bias === undefined ? 0 : 1,
    ],
    subgroupSize: units.subgroupSize,
    parameters: {
      ...{ w, up, x, y, order, rows, expertRows },
      ...(bias && { bias: bias.data }),
      ...(upBias && { upBias: upBias.data }),
      sharing: apart ? 1 : slots,
      upRow: isMerged ? rows : 0,
      width: w.columns,
    },
    groups: [tileCapacityOf(product), ceilDiv(rows, tileRows)],
    label: w.name,
  });
}

function check(
  context: KernelContext,
  units: MatrixUnits,
  product: ExpertMatmul,
  tuning: ExpertTuning,
): void {
  const { w, bias, gated, experts, x, apart = false, y, slots, rowCapacity } = product;
  const { up = w, bias: upBias } = gated ?? {};
  const isMerged = gated !== undefined && gated.up === undefined;
  const rows = w.rows / experts / (isMerged ? 2 : 1);
  invariant(Number.isInteger(rows), `${w.name}: ${w.rows} rows of ${experts} experts`);
  invariant(suitsMatrixUnits(w.dtype, w.columns), `${w.name}: ${w.columns} of ${w.dtype}`);
  invariant(
    up.dtype === w.dtype && up.rows === w.rows && up.columns === w.columns,
    `${w.name} and ${up.name} differ`,
  );
  for (const offsets of [bias, upBias]) {
    invariant(offsets === undefined || offsets.length === w.rows, `${w.name}: ${offsets?.name}`);
  }
  const inputs = rowCapacity * (apart ? slots : 1);
  invariant(x.byteSize >= inputs * w.columns * 4, `${w.name}: x is too small`);
  invariant(y.byteSize >= rowCapacity * slots * rows * 4, `${w.name}: y is too small`);
  const { slice } = tuning;
  invariant(slice % unitValues(w.dtype) === 0, `${w.name}: slices of ${slice} values`);
  const bytes = sharedBytes(units, product, tuning);
  const { sharedMemoryBytes } = context.capabilities.limits;
  invariant(bytes <= sharedMemoryBytes, `${w.name}: ${bytes} bytes of shared memory`);
}

/** From the one that shares most to the one that needs least. */
const tileRowsWanted = { gated: [64, 32, 16], plain: [128, 64, 32, 16] } as const;
const subgroupsMax = 4;

/** Subgroups one above the other, each with all choices: what few rows leave out is even then. */
function defaultTuning(
  { capabilities }: KernelContext,
  units: MatrixUnits,
  product: ExpertMatmul,
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
  { tile }: Pick<ExpertMatmul, "tile">,
  { tileRows, partRows, partColumns }: ExpertTuning,
): number {
  return (tileRows / partRows) * (tile / partColumns);
}

function sharedBytes(units: MatrixUnits, product: ExpertMatmul, tuning: ExpertTuning): number {
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
