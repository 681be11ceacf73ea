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
import type { GateFunction } from "./gate.ts";
import { glu } from "./glu.ts";

/** The weights of a mixture; those of all experts are one matrix each, expert behind expert. */
export interface ExpertWeights {
  readonly routing: Routing;
  /** Of the gates; SiLU by default. */
  readonly activation?: GateFunction | undefined;
  /** [experts, width] */
  readonly router: Matrix;
  /** [experts] */
  readonly routerBias?: Vector | undefined;
  /** The norm of what the router reads, where it is not that of what the experts read. */
  readonly routerNorm?: RouterNorm | undefined;
  /** [experts]: added to the scores for the choice alone. */
  readonly selectionBias?: Vector | undefined;
  /** [experts · feedForward, width], or [experts · (gate | up), width] without `up`. */
  readonly gate: Matrix;
  readonly up?: Matrix | undefined;
  /** [experts · width, feedForward] */
  readonly down: Matrix;
  /** As many values as the matrices have rows. */
  readonly gateBias?: Vector | undefined;
  readonly upBias?: Vector | undefined;
  readonly downBias?: Vector | undefined;
  /** [experts]: on what each gives. */
  readonly factors?: Vector | undefined;
  readonly shared?: SharedExpert | undefined;
}

export interface RouterNorm {
  readonly weight: Vector;
  /** On the normalized values. */
  readonly factor: number;
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
  /** [rowCapacity, width], added to unless there is `y`. */
  readonly x: BufferSlice;
  /** [rowCapacity, width], written. */
  readonly y?: BufferSlice | undefined;
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

/** x += Σ weightₑ · Downₑ · (f(Gateₑ · h) ⊙ (Upₑ · h)) + shared expert, with h = norm(x) */
export function experts(context: KernelContext, args: Experts): void {
  const { x, y = x, norm, epsilon, weights, workspace, deterministic, ...rows } = args;
  const { routing, down, downBias, shared } = weights;
  const { experts: count, used: slots } = routing;
  const s = partition(workspace, rows.rowCapacity, {
    width: norm.length,
    experts: count,
    used: slots,
    feedForward: down.columns,
    sharedFeedForward: shared?.down.columns ?? 0,
  });
  route(context, args, s);
  if (shared !== undefined) startShared(context, args, shared, s);
  const { selectionBias: bias, factors } = weights;
  expertChoice(context, { logits: s.logits, bias, factors, routing, choices: s.choices, ...rows });
  gateExperts(context, args, s);
  expertDown(context, {
    experts: count,
    choices: s.choices,
    slots,
    down,
    bias: downBias,
    x: s.gated,
    y,
    accumulate: y === x,
    ...rows,
  });
  if (shared === undefined) return;
  const product = { w: shared.down, x: s.sharedGate, activation: "float", consumes: true } as const;
  matmul(context, { ...product, y, accumulate: true, deterministic, ...rows });
}

/** What experts read, and the router's logits. */
function route(context: KernelContext, args: Experts, s: Parts): void {
  const { x, norm: weight, epsilon, weights, deterministic, step, rowCapacity } = args;
  const { router: w, routerBias: bias, routerNorm } = weights;
  const rows = { step, rowCapacity };
  const ownNorm = routerNorm ?? { weight, factor: 1 };
  rmsNorm(context, { x, y: s.normed, epsilon, ...ownNorm, ...rows });
  const product = { w, bias, x: s.normed, activation: "float", y: s.logits } as const;
  matmul(context, { ...product, deterministic, ...rows });
  if (routerNorm !== undefined) rmsNorm(context, { x, weight, y: s.normed, epsilon, ...rows });
}

/** gated = f(Gateₑ · h) ⊙ (Upₑ · h) */
function gateExperts(context: KernelContext, { weights, step, rowCapacity }: Experts, s: Parts) {
  const { routing, activation = "silu", gate, up, gateBias, upBias, down } = weights;
  const rows = { step, rowCapacity };
  const [count, slots] = [routing.experts, routing.used];
  const chosen = { experts: count, x: s.normed, choices: s.choices, slots, ...rows };
  if (up === undefined || up.dtype === gate.dtype) {
    expertGateUp(context, { gate, up, gateBias, upBias, activation, y: s.gated, ...chosen });
    return;
  }
  expertGateUp(context, { gate, gateBias, alone: true, y: s.gated, ...chosen });
  expertGateUp(context, { gate: up, gateBias: upBias, alone: true, y: s.up, ...chosen });
  const width = slots * down.columns;
  glu(context, { gate: s.gated, up: s.up, y: s.gated, width, activation, ...rows });
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
  for (const product of products) {
    matmul(context, { ...product, x: s.normed, activation: "float", deterministic, ...rows });
  }
  glu(context, {
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
