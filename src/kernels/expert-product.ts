/** What the products of experts with sorted rows share, whichever matrix units they are for. */
import { invariant } from "../errors.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import type { GateFunction } from "./gate.ts";
import { matrix, reads, writes } from "./kernel.ts";
import { suitsMatrixUnits } from "./matrix-units.ts";

export const expertFields = {
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
} as const;

export interface ExpertProduct {
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

/** Results of an expert for each of its choices. */
export function expertResults({ w, gated, experts }: ExpertProduct): number {
  const isMerged = gated !== undefined && gated.up === undefined;
  return w.rows / experts / (isMerged ? 2 : 1);
}

export function expertParameters(product: ExpertProduct) {
  const { w, bias, gated, experts, x, apart = false, y, order, slots } = product;
  const { up = w, bias: upBias = bias } = gated ?? {};
  const isMerged = gated !== undefined && gated.up === undefined;
  const rows = expertResults(product);
  check(product, rows);
  return {
    ...{ w, up, x, y, order, rows },
    ...(bias && { bias: bias.data }),
    ...(upBias && { upBias: upBias.data }),
    sharing: apart ? 1 : slots,
    expertRows: w.rows / experts,
    upRow: isMerged ? rows : 0,
    width: w.columns,
  };
}

function check(product: ExpertProduct, rows: number): void {
  const { w, bias, gated, experts, x, apart = false, y, slots, rowCapacity } = product;
  const { up = w, bias: upBias } = gated ?? {};
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
}
