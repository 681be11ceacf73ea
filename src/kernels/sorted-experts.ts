/**
 * The experts of many rows on matrix units: rows are sorted by expert, so that weights are read
 * once for all rows that chose them.
 */
import { invariant } from "../errors.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { directTile, expertDirect } from "./expert-direct.ts";
import { expertMatmul, expertTile } from "./expert-matmul.ts";
import { expertOrder } from "./expert-order.ts";
import type { ExpertProduct } from "./expert-product.ts";
import { expertSum } from "./expert-sum.ts";
import type { ExpertWeights } from "./experts.ts";
import { holdsQuads } from "./fragments.ts";
import { glu } from "./glu.ts";
import { halve } from "./halve.ts";
import type { KernelContext } from "./kernel.ts";
import { matrixUnitsOf, suitsMatrixUnits } from "./matrix-units.ts";

export interface SortedExperts {
  readonly weights: ExpertWeights;
  /** [rowCapacity, width], as `halve` leaves them. */
  readonly x: BufferSlice;
  /** From `expertChoice`. */
  readonly choices: BufferSlice;
  /** `orderWords` words a row: scratch, as what follows. */
  readonly order: BufferSlice;
  /** [rowCapacity, slots, feedForward] */
  readonly gated: BufferSlice;
  /** The same, where gate and up are of different types. */
  readonly up: BufferSlice;
  /** [rowCapacity, slots, width] */
  readonly given: BufferSlice;
  /** [rowCapacity, width], added to unless `accumulate` is false. */
  readonly y: BufferSlice;
  readonly accumulate: boolean;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
}

/** Rows from which reading weights once is best. */
const rowsMin = 128;

/** Whether the rows are many enough, and device and types such, that `sortedExperts` is best. */
export function sortsExperts(
  { capabilities }: KernelContext,
  { gate, up = gate, down }: ExpertWeights,
  rows: { readonly rowCapacity: number; readonly deterministic: boolean },
): boolean {
  if (rows.rowCapacity < rowsMin || rows.deterministic || capabilities.kind === "cpu") return false;
  const suit = [gate, up, down].every(({ dtype, columns }) => suitsMatrixUnits(dtype, columns));
  return suit && matrixUnitsOf(capabilities) !== undefined;
}

/** y (+)= Σ weightₑ · Downₑ · (f(Gateₑ · x) ⊙ (Upₑ · x)) */
export function sortedExperts(context: KernelContext, args: SortedExperts): void {
  const { weights, x, choices, order, gated, given, y, accumulate, step, rowCapacity } = args;
  const { routing, activation: gate = "silu", down } = weights;
  const { experts, used: slots } = routing;
  const isDirect = holdsQuads(context.capabilities);
  const tile = isDirect ? directTile : expertTile({ experts, slots, rowCapacity });
  const rows = { step, rowCapacity };
  const sorted = { experts, order, tile, slots, rowCapacity };
  expertOrder(context, { ...sorted, choices, step });
  const { gate: w, gateBias: bias, up, upBias } = weights;
  const width = down.columns;
  if (up === undefined || up.dtype === w.dtype) {
    const product = { w, bias, gated: { gate, up, bias: upBias }, x, y: gated };
    multiply(context, { ...product, ...sorted });
  } else {
    multiply(context, { w, bias, x, y: gated, ...sorted });
    multiply(context, { w: up, bias: upBias, x, y: args.up, ...sorted });
    const product = { gate: gated, up: args.up, y: gated, width: slots * width, activation: gate };
    glu(context, { ...product, ...rows });
  }
  halve(context, { x: gated, y: gated, width, parts: slots, ...rows });
  const product = { w: down, bias: weights.downBias, x: gated, apart: true, y: given };
  multiply(context, { ...product, ...sorted });
  const sum = { x: given, y, accumulate, choices, slots, width: down.rows / experts };
  expertSum(context, { ...sum, ...rows });
}

function multiply(context: KernelContext, product: ExpertProduct): void {
  const { capabilities } = context;
  if (holdsQuads(capabilities)) {
    expertDirect(context, product);
    return;
  }
  const units = matrixUnitsOf(capabilities);
  invariant(units !== undefined, `${product.w.name}: the device has no matrix units`);
  expertMatmul(context, units, product);
}
