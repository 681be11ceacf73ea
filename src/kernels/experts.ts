/**
 * A feed-forward block that is a mixture of experts: normalization, the router's choice, the chosen
 * experts and, where there is one, the expert that takes every row.
 */
import { invariant } from "../errors.ts";
import { roundUp } from "../math.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { choiceWords, expertChoice, type Routing } from "./expert-choice.ts";
import { expertDown } from "./expert-down.ts";
import { expertGateUp } from "./expert-gate-up.ts";
import type { KernelContext } from "./kernel.ts";
import { matmul } from "./matmul.ts";
import { rmsNorm } from "./rms-norm.ts";
import { swiglu } from "./swiglu.ts";

/** The weights of a mixture; those of all experts are one matrix each, expert behind expert. */
export interface ExpertWeights {
  readonly routing: Routing;
  /** [experts, width] */
  readonly router: Matrix;
  /** [experts]: added to the scores for the choice alone. */
  readonly selectionBias?: Vector | undefined;
  /** [experts · feedForward, width], or [experts · (gate | up), width] without `up`. */
  readonly gate: Matrix;
  readonly up?: Matrix | undefined;
  /** [experts · width, feedForward] */
  readonly down: Matrix;
  readonly shared?: SharedExpert | undefined;
}

/** The expert that takes every row. */
export interface SharedExpert {
  readonly gate: Matrix;
  readonly up: Matrix;
  readonly down: Matrix;
  /** [1, width]: a row's share of it is the sigmoid of this product; all of it without. */
  readonly switch?: Matrix | undefined;
}

export interface Experts {
  /** [rowCapacity, width], added to. */
  readonly x: BufferSlice;
  readonly norm: Vector;
  readonly epsilon: number;
  readonly weights: ExpertWeights;
  /** Scratch of `expertsFloats` floats a row. */
  readonly workspace: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly deterministic: boolean;
}

/** Parts of the workspace, in floats a row. */
function partsOf(sizes: ExpertSizes) {
  const { width, experts, used, feedForward, sharedFeedForward } = sizes;
  return {
    normed: width,
    logits: roundUp(experts, 4),
    choices: roundUp(choiceWords(used), 4),
    gated: used * feedForward,
    // Only where gate and up are of different types.
    up: used * feedForward,
    sharedGate: sharedFeedForward,
    sharedUp: sharedFeedForward,
    sharedSwitch: 4,
  };
}

export interface ExpertSizes {
  readonly width: number;
  readonly experts: number;
  readonly used: number;
  readonly feedForward: number;
  /** 0 if there is no shared expert. */
  readonly sharedFeedForward: number;
}

/** Floats of workspace a row. */
export function expertsFloats(sizes: ExpertSizes): number {
  return Object.values(partsOf(sizes)).reduce((sum, floats) => sum + floats, 0);
}

/** x += Σ weightₑ · Downₑ · (silu(Gateₑ · h) ⊙ (Upₑ · h)) + shared expert, with h = norm(x) */
export function experts(context: KernelContext, args: Experts): void {
  const { x, norm, epsilon, weights, workspace, deterministic, ...rows } = args;
  const { router, selectionBias: bias, routing, gate, up, down, shared } = weights;
  const { experts: count, used: slots } = routing;
  const feedForward = down.columns;
  const s = partition(workspace, rows.rowCapacity, {
    width: norm.length,
    experts: count,
    used: slots,
    feedForward,
    sharedFeedForward: shared?.down.columns ?? 0,
  });
  rmsNorm(context, { x, weight: norm, y: s.normed, epsilon, ...rows });
  matmul(context, { w: router, x: s.normed, y: s.logits, deterministic, ...rows });
  if (shared !== undefined) startShared(context, args, shared, s);
  expertChoice(context, { logits: s.logits, bias, routing, choices: s.choices, ...rows });
  const chosen = { experts: count, x: s.normed, choices: s.choices, slots, ...rows };
  if (up === undefined || up.dtype === gate.dtype) {
    expertGateUp(context, { gate, up, y: s.gated, ...chosen });
  } else {
    expertGateUp(context, { gate, alone: true, y: s.gated, ...chosen });
    expertGateUp(context, { gate: up, alone: true, y: s.up, ...chosen });
    swiglu(context, { gate: s.gated, up: s.up, y: s.gated, width: slots * feedForward, ...rows });
  }
  expertDown(context, { ...chosen, down, x: s.gated, y: x });
  if (shared === undefined) return;
  matmul(context, {
    w: shared.down,
    x: s.sharedGate,
    y: x,
    accumulate: true,
    deterministic,
    ...rows,
  });
}

/** Everything of the shared expert but its down product: it does not wait for the router. */
function startShared(
  context: KernelContext,
  { step, rowCapacity, deterministic }: Experts,
  shared: SharedExpert,
  s: Parts,
): void {
  const rows = { step, rowCapacity };
  const products = [
    { w: shared.gate, y: s.sharedGate },
    { w: shared.up, y: s.sharedUp },
    ...(shared.switch === undefined ? [] : [{ w: shared.switch, y: s.sharedSwitch }]),
  ];
  for (const { w, y } of products) matmul(context, { w, x: s.normed, y, deterministic, ...rows });
  swiglu(context, {
    gate: s.sharedGate,
    up: s.sharedUp,
    y: s.sharedGate,
    rowSwitch: shared.switch && s.sharedSwitch,
    width: shared.gate.rows,
    ...rows,
  });
}

type Parts = Readonly<Record<keyof ReturnType<typeof partsOf>, BufferSlice>>;

function partition(workspace: BufferSlice, rowCapacity: number, sizes: ExpertSizes): Parts {
  let offset = 0;
  const entries = Object.entries(partsOf(sizes)).map(([name, floats]) => {
    const byteSize = rowCapacity * floats * 4;
    const slice = subslice(workspace, offset, byteSize);
    offset += byteSize;
    return [name, slice] as const;
  });
  invariant(offset <= workspace.byteSize, "experts: the workspace is too small");
  return Object.fromEntries(entries) as Parts;
}
