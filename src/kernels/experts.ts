/**
 * A feed-forward block that is a mixture of experts: normalization, the router's choice, the chosen
 * experts and, where there is one, the expert that takes every row.
 */
import { invariant } from "../errors.ts";
import { roundUp } from "../math.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { expertActivation, type ExpertActivation } from "./activations.ts";
import { choiceWords, expertChoice, type Routing } from "./expert-choice.ts";
import { expertDown, type ExpertDown } from "./expert-down.ts";
import { expertGateUp } from "./expert-gate-up.ts";
import type { GateFunction } from "./gate.ts";
import { gatedProduct, gatedProductFloats } from "./gated-product.ts";
import { expertOrder, orderWords } from "./expert-order.ts";
import { expertSum } from "./expert-sum.ts";
import { glu } from "./glu.ts";
import { halve } from "./halve.ts";
import type { KernelContext } from "./kernel.ts";
import { matmul } from "./matmul.ts";
import { normedProducts, normedProductsFloats } from "./normed-products.ts";
import { quantize } from "./quantize.ts";
import { rmsNorm } from "./rms-norm.ts";
import { canRoute, router } from "./router.ts";
import { sortedExperts, sortsExperts } from "./sorted-experts.ts";

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
  /** A zero of four bytes, which is left as it was. */
  readonly counter: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly deterministic: boolean;
}

/** Parts of the workspace, in floats a row. */
function partsOf(sizes: ExpertSizes) {
  const { width, experts, used, feedForward, sharedFeedForward } = sizes;
  return {
    prepared: width,
    routed: normedProductsFloats(width),
    logits: roundUp(experts, 4),
    choices: roundUp(choiceWords(used), 4),
    gated: used * feedForward,
    // Only where gate and up are of different types.
    up: used * feedForward,
    // Only where rows are sorted by expert.
    order: roundUp(orderWords(used), 4),
    given: used * width,
    sharedWorkspace: sharedFeedForward === 0 ? 0 : gatedProductFloats(width, sharedFeedForward),
    sharedGated: sharedFeedForward,
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
  const { x, y = x, norm, weights, workspace, rowCapacity } = args;
  const { routing, down, shared } = weights;
  const { experts: count, used: slots } = routing;
  const s = partition(workspace, rowCapacity, {
    width: norm.length,
    experts: count,
    used: slots,
    feedForward: down.columns,
    sharedFeedForward: shared?.down.columns ?? 0,
  });
  const choose = route(context, args, s);
  const addExperts = prepare(context, args, s);
  if (shared !== undefined) shareGated(context, args, shared, s);
  // What follows writes x; all that reads its norm stands above.
  choose();
  if (shared !== undefined) shareDown(context, args, shared, s);
  addExperts({ y, accumulate: y === x || shared !== undefined });
}

/** Where the sum of the experts goes. */
type Target = Required<Pick<ExpertDown, "y" | "accumulate">>;

/** Chooses the way for the number of rows. */
function prepare(context: KernelContext, args: Experts, s: Parts): (target: Target) => void {
  if (sortsExperts(context, args.weights, args)) return addSorted(context, args, s);
  const tile = sharedTile(context, args);
  return tile === undefined ? addOneByOne(context, args, s) : addShared(context, args, s, tile);
}

/** Normalizes rows for the experts. Returns what appends the rest. */
function addSorted(context: KernelContext, args: Experts, s: Parts): (target: Target) => void {
  const { x, norm, epsilon, weights, step, rowCapacity } = args;
  const rows = { step, rowCapacity };
  const rule = { weight: norm, epsilon };
  halve(context, { x, y: s.prepared, width: norm.length, norm: rule, ...rows });
  return (target) => sortedExperts(context, { weights, ...s, x: s.prepared, ...target, ...rows });
}

/** Rows that do not repay the order, and what it takes to compile. */
const fewRows = 16;

/**
 * How many choices of an expert are to share its weights where there are no matrix units; undefined
 * if most experts are chosen by too few. More would not fit into the registers of a GPU.
 */
function sharedTile({ capabilities }: KernelContext, args: Experts): number | undefined {
  const { weights, rowCapacity, deterministic } = args;
  const { experts: count, used } = weights.routing;
  const [tile, least] = capabilities.kind === "cpu" ? [4, 2] : [2, 8];
  const isMany = rowCapacity > fewRows && rowCapacity * used >= least * count;
  return isMany && !deterministic ? tile : undefined;
}

/** The same without matrix units, a few rows of an expert at a time. */
function addShared(
  context: KernelContext,
  args: Experts,
  s: Parts,
  tile: number,
): (target: Target) => void {
  const { weights, step, rowCapacity } = args;
  const { routing, down: gate, downBias: gateBias } = weights;
  const { experts: count, used: slots } = routing;
  const { order, gated, given } = s;
  const rows = { step, rowCapacity };
  const sorted = { experts: count, slots, tile, ...rows };
  const gateExperts = prepareExperts(context, args, s, tile);
  return (target) => {
    expertOrder(context, { ...sorted, choices: s.choices, order });
    const activation = gateExperts();
    const product = { gate, gateBias, alone: true, x: gated, apart: true, activation, y: given };
    expertGateUp(context, { ...product, ...sorted, choices: order });
    const sum = { x: given, choices: s.choices, slots, width: gate.rows / count };
    expertSum(context, { ...sum, ...target, ...rows });
  };
}

/** The same for each row by itself. */
function addOneByOne(context: KernelContext, args: Experts, s: Parts): (target: Target) => void {
  const { weights, step, rowCapacity } = args;
  const { routing, down, downBias: bias } = weights;
  const { experts: count, used: slots } = routing;
  const gateExperts = prepareExperts(context, args, s);
  return (target) => {
    const activation = gateExperts();
    const product = { experts: count, choices: s.choices, slots, down, bias, x: s.gated };
    expertDown(context, { ...product, activation, ...target, step, rowCapacity });
  };
}

/**
 * The router's logits, and the switch of the shared expert. Returns what appends the choice, which
 * for one row is made already.
 */
function route(context: KernelContext, args: Experts, s: Parts): () => void {
  const { x, norm, epsilon, weights, counter, deterministic, step, rowCapacity } = args;
  const { router: w, routerBias, routerNorm, shared, routing, factors } = weights;
  const rows = { step, rowCapacity };
  const { logits, choices } = s;
  const choice = { logits, bias: weights.selectionBias, factors, routing, choices, step };
  const isOne = rowCapacity === 1 && !deterministic && routerNorm === undefined && canRoute(w);
  const products = [
    ...(isOne || routerNorm !== undefined ? [] : [{ w, bias: routerBias, y: logits }]),
    ...(shared?.switch === undefined ? [] : [{ w: shared.switch, y: s.sharedSwitch }]),
  ];
  if (products.length > 0) {
    const normed = { x, norm, epsilon, workspace: s.routed };
    normedProducts(context, { ...normed, products, deterministic, ...rows });
  }
  if (isOne) {
    router(context, { ...choice, w, offsets: routerBias, x, norm, epsilon, counter });
    return () => {};
  }
  if (routerNorm !== undefined) {
    rmsNorm(context, { x, y: s.routed, epsilon, ...routerNorm, ...rows });
    const product = { w, bias: routerBias, x: s.routed, activation: "float", y: logits } as const;
    matmul(context, { ...product, deterministic, ...rows });
  }
  return () => expertChoice(context, { ...choice, rowCapacity });
}

/**
 * Normalizes rows for the experts. Returns what appends gated = f(Gateₑ · h) ⊙ (Upₑ · h), with a
 * `tile` in the order of experts, and tells how it leaves that.
 */
function prepareExperts(
  context: KernelContext,
  args: Experts,
  s: Parts,
  tile?: number,
): () => ExpertActivation {
  const { x, norm, epsilon, weights, step, rowCapacity, deterministic } = args;
  const { routing, activation: gateFunction = "silu", down, gate, up } = weights;
  const { gateBias, upBias } = weights;
  const rows = { step, rowCapacity };
  const kindOf = (w: Matrix) => expertActivation(context, { w, rowCapacity, deterministic });
  const isApart = up !== undefined && up.dtype !== gate.dtype;
  const activation = isApart && kindOf(up) !== kindOf(gate) ? "float" : kindOf(gate);
  if (activation === "int8") {
    const rule = { weight: norm, epsilon };
    quantize(context, { x, y: s.prepared, width: norm.length, norm: rule, ...rows });
  } else {
    rmsNorm(context, { x, weight: norm, y: s.prepared, epsilon, ...rows });
  }
  const { experts: count, used: slots } = routing;
  const choices = tile === undefined ? s.choices : s.order;
  const chosen = { experts: count, x: s.prepared, activation, choices, tile, slots, ...rows };
  return () => {
    if (isApart) {
      expertGateUp(context, { gate, gateBias, alone: true, y: s.gated, ...chosen });
      expertGateUp(context, { gate: up, gateBias: upBias, alone: true, y: s.up, ...chosen });
      const width = slots * down.columns;
      const gated = { gate: s.gated, up: s.up, y: s.gated, width, activation: gateFunction };
      glu(context, { ...gated, ...rows });
      return "float";
    }
    const yActivation = kindOf(down);
    const product = { gate, up, gateBias, upBias, gateFunction, y: s.gated, yActivation };
    expertGateUp(context, { ...product, ...chosen });
    return yActivation;
  };
}

/** All of the shared expert but its down product: it does not wait for the router. */
function shareGated(context: KernelContext, args: Experts, shared: SharedExpert, s: Parts): void {
  const { x, norm, epsilon, step, rowCapacity, deterministic } = args;
  const { gate, up, down: reader } = shared;
  const product = { x, norm, epsilon, gate, up, y: s.sharedGated, reader };
  const rows = { step, rowCapacity, deterministic };
  gatedProduct(context, { ...product, workspace: s.sharedWorkspace, ...rows });
}

function shareDown(context: KernelContext, args: Experts, shared: SharedExpert, s: Parts): void {
  const { x, y = x, step, rowCapacity, deterministic } = args;
  const product = { w: shared.down, x: s.sharedGated, y, accumulate: y === x };
  const rowSwitch = shared.switch && s.sharedSwitch;
  matmul(context, { ...product, rowSwitch, step, rowCapacity, deterministic });
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
