/** Linear layers for few rows of activations: weights are read once, and neighbours are fused. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { isComputable, type Matrix, type Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { codesIn, stepsIn, type ActivationKind } from "./activations.ts";
import { gateNumber, type GateFunction } from "./gate.ts";
import {
  defineKernel,
  launch,
  matrix,
  reads,
  updates,
  writes,
  type DeviceContext,
  type KernelContext,
} from "./kernel.ts";
import { invocationsMax, linearContest } from "./linear-contest.ts";
import { productFlags } from "./product-flags.ts";
import { teamOf } from "./reduction.ts";
import type { ShaderName } from "./shaders.ts";
import { unitValues } from "./unit-values.ts";
import { nvidia } from "./vendors.ts";

export const linearKernel = defineKernel("linear", {
  w: matrix,
  up: matrix,
  x: reads,
  aside: reads,
  y: updates,
  ySteps: writes,
  bias: reads,
  rowSwitch: reads,
  gate: reads,
  step: reads,
  rows: u32,
  flags: u32,
  epsilon: f32,
});

export interface Linear {
  /** [rows, width] */
  readonly w: Matrix;
  /** With a gate: y = gate(W · x) ⊙ (Up · x). Of the type and shape of `w`. */
  readonly gated?: { readonly up: Matrix; readonly gate: GateFunction } | undefined;
  /** [rowCapacity, width], as `activation` says; with `norm` the floats of the residual stream. */
  readonly x: BufferSlice;
  readonly activation: ActivationKind;
  /** RMS-normalize x on the way; for one row. */
  readonly norm?: InputNorm | undefined;
  /** [rowCapacity, rows], written, or added to with `accumulate`. */
  readonly y: BufferSlice;
  /** What the next product reads `y` as. */
  readonly yActivation?: ActivationKind;
  readonly bias?: Vector | undefined;
  /** [rowCapacity]: each row's results are scaled by the sigmoid of its value. */
  readonly rowSwitch?: BufferSlice | undefined;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly accumulate?: boolean | undefined;
  /** The rows are the step's output rows. */
  readonly outputs?: boolean | undefined;
  readonly tuning?: LinearTuning | undefined;
}

export interface InputNorm {
  readonly weight: Vector;
  readonly epsilon: number;
  /** Heads of `weight.length` values are normalized apart, and gated: x · silu(gate). */
  readonly gate?: BufferSlice | undefined;
}

/** How the work is laid out; results differ only in rounding. */
export interface LinearTuning {
  /** Invocations that share a row. */
  readonly lanes: number;
  /** Rows of W that a team of lanes computes at once. */
  readonly rows: number;
  /** Rows of activations for which a weight is unpacked once. */
  readonly columns: number;
  /** Subgroups in a workgroup. */
  readonly subgroups: number;
  /** Turns of a workgroup. */
  readonly passes: number;
  /** Teams that share the rows; 1 by default. */
  readonly split?: number;
}

export function linear(context: KernelContext, args: Linear): void {
  const { w, gated, activation, norm, y, yActivation = "float", step, rowCapacity } = args;
  const { rows, columns: width } = w;
  invariant(isComputable(w.dtype, width), `linear ${w.name}: ${width} columns of ${w.dtype}`);
  invariant(
    norm === undefined || rowCapacity === 1,
    `linear ${w.name}: norm of ${rowCapacity} rows`,
  );
  const tuning = args.tuning ?? tuningOf(context, args);
  const team = teamOf(context);
  const workgroup = team.lanes * tuning.subgroups;
  const { split = 1 } = tuning;
  const turnRows = (workgroup / tuning.lanes / split) * tuning.rows;
  // A device counts no more workgroups than that: the heads of large vocabularies take more turns.
  const [workgroupsMax = 1] = context.capabilities.limits.workgroupCount;
  const passes = Math.max(tuning.passes, ceilDiv(rows, turnRows * workgroupsMax));
  const workgroupRows = turnRows * passes;
  const quantizes = yActivation === "int8";
  invariant(tuning.lanes <= team.lanes, `linear ${w.name}: ${tuning.lanes} lanes of ${team.lanes}`);
  invariant(
    !quantizes || (workgroupRows % 32 === 0 && rows % 32 === 0),
    `linear ${w.name}: ${workgroupRows} rows of ${rows} cannot be quantized together`,
  );
  launch(context, linearKernel, {
    shader: `linear.${w.dtype}.${team.reduction}.${activation}` as ShaderName,
    constants: [
      workgroup,
      tuning.lanes,
      tuning.rows,
      tuning.columns,
      passes,
      width,
      norm === undefined ? 0 : 1,
      gated === undefined ? 0 : 1,
      quantizes ? 1 : 0,
      gated === undefined ? 0 : gateNumber(gated.gate),
      split,
      norm?.gate === undefined ? 0 : norm.weight.length,
    ],
    subgroupSize: team.subgroupSize,
    parameters: {
      ...inputOf(args),
      ...resultRows(y, quantizes, rowCapacity, rows),
      w,
      step,
      rows,
      flags: productFlags(args),
      epsilon: norm?.epsilon ?? 0,
      ...(gated && { up: gated.up }),
      ...(args.bias && { bias: args.bias.data }),
      ...(args.rowSwitch && { rowSwitch: args.rowSwitch }),
      ...(norm?.gate && { gate: norm.gate }),
    },
    groups: [ceilDiv(rows, workgroupRows), ceilDiv(rowCapacity, tuning.columns)],
    label: w.name,
  });
}

function inputOf({ x, activation, norm, w, rowCapacity }: Linear) {
  if (norm !== undefined) return { x, aside: norm.weight.data };
  return preparedRows(x, activation, rowCapacity, w.columns);
}

/** Prepared activations as kernels take them: floats, or codes and their steps. */
export function preparedRows(
  x: BufferSlice,
  activation: ActivationKind,
  rowCapacity: number,
  width: number,
) {
  if (activation === "float") return { x };
  return { x: codesIn(x, rowCapacity, width), aside: stepsIn(x, rowCapacity, width) };
}

/** The same for results. */
export function resultRows(y: BufferSlice, quantizes: boolean, rowCapacity: number, rows: number) {
  if (!quantizes) return { y };
  return { y: codesIn(y, rowCapacity, rows), ySteps: stepsIn(y, rowCapacity, rows) };
}

/** Invocations of a team that share a row: no more than there are units in it. */
export function rowLanes(w: Matrix, teamLanes: number): number {
  let lanes = teamLanes;
  while (lanes > 1 && lanes / 2 >= w.columns / unitValues(w.dtype)) lanes /= 2;
  return lanes;
}

/** Subgroups that keep a large GPU busy: 16 for each of its multiprocessors. */
const subgroupsWanted = 2048;
const subgroupsMax = 16;
/** Of the largest, that are resident together. */
const workgroupsFew = 256;
/** Rows of the head of a large vocabulary. */
const manyRows = 32_768;

/** The measured one, if its work for one row was measured. */
function tuningOf(context: KernelContext, args: Linear): LinearTuning {
  const usual = defaultTuning(context, args);
  if (context.tunings === undefined || args.rowCapacity !== 1) return usual;
  return context.tunings.choose(linearContest(context, args, usual, linear));
}

/** By the shape of the work and what the device is. */
export function defaultTuning(context: DeviceContext, args: Linear): LinearTuning {
  const { w, rowCapacity, yActivation, norm } = args;
  const isCpu = context.capabilities.kind === "cpu";
  if (!isCpu && rowCapacity === 1 && isTall(args)) {
    return {
      lanes: rowLanes(w, teamOf(context).lanes),
      rows: 4,
      columns: 1,
      subgroups: 8,
      passes: 4,
    };
  }
  const { rows, columns } =
    isCpu && rowCapacity > cpuFewRows ? cpuPatch(args) : patch(context, args);
  const { lanes: teamLanes } = teamOf(context);
  const lanes = rowLanes(w, teamLanes);
  const split = splitOf(context, args, rows, lanes);
  // What precedes the product is done by every workgroup, so it must have enough to do.
  const least = isCpu ? 1 : norm !== undefined ? normSubgroups(w) : columns > 2 ? 4 : 1;
  const quantizes = yActivation === "int8";
  const { workgroupInvocations } = context.capabilities.limits;
  const invocations = Math.min(workgroupInvocations, invocationsMax);
  const most = Math.min(subgroupsMax, invocations / teamLanes);
  // Few workgroups that quantize do it in one turn.
  const quick = quantizes && !isCpu && w.rows / 32 <= workgroupsFew ? most : least;
  // Rows that are shared come in pairs where they are short.
  const pairs = split > 1 && norm === undefined && args.activation === "int8" ? 2 : 1;
  const subgroups = Math.max(quick, split * pairs);
  const turnRows = ((teamLanes * subgroups) / lanes / split) * rows;
  const wanted = quantizes || (norm !== undefined && isCpu) ? 32 : turnRows * turnsOf(args, isCpu);
  return { lanes, rows, columns, subgroups, passes: Math.max(1, wanted / turnRows), split };
}

/** Narrow rows are prepared quickly. */
function normSubgroups({ columns }: Matrix): number {
  return columns <= 2048 ? 4 : 8;
}

/** Two matrices of plain values: a prepared input serves twice. */
function turnsOf({ norm, gated, activation }: Linear, isCpu: boolean): number {
  return !isCpu && norm !== undefined && gated !== undefined && activation === "float" ? 2 : 1;
}

/** So many rows that each workgroup may take many of them and prepare its input once. */
function isTall({ w, norm, activation, gated, yActivation }: Linear): boolean {
  const isPlain = gated === undefined && yActivation !== "int8" && activation === "int8";
  return isPlain && norm !== undefined && w.rows >= manyRows;
}

/** Where rows are too few to keep the device busy and long enough, teams share them. */
function splitOf(context: DeviceContext, args: Linear, rows: number, lanes: number): number {
  const { w, norm, yActivation, rowCapacity } = args;
  const { lanes: teamLanes } = teamOf(context);
  if (context.capabilities.kind === "cpu" || yActivation === "int8") return 1;
  const most = norm === undefined ? subgroupsMax : 8;
  const turns = w.columns / unitValues(w.dtype) / lanes;
  const subgroups = ((w.rows / rows) * lanes) / teamLanes;
  // Plain values are many bytes a row, which more teams ask for earlier.
  const wanted = args.activation === "float" && norm === undefined ? 4 : 1;
  let split = 1;
  while (
    split * 2 <= Math.min(most, turns) &&
    subgroups * split * 2 <= subgroupsWanted * wanted &&
    rowCapacity <= 2
  ) {
    split *= 2;
  }
  return split;
}

type Patch = Pick<LinearTuning, "rows" | "columns">;

/** Columns of a patch: more of them would leave no room for several rows of weights. */
const columnsMax = 4;

/** What fits into registers, and keeps both weights and activations there for several products. */
function patch({ capabilities }: DeviceContext, product: Linear): Patch {
  const { w, rowCapacity, activation, gated } = product;
  // Two matrices with long units fill them.
  const isHeavy = activation === "float" && gated !== undefined && unitValues(w.dtype) === 64;
  const columns = Math.min(rowCapacity, columnsMax);
  if (columns <= 2) return { rows: isHeavy ? 1 : 2, columns };
  if (activation === "float" || gated !== undefined) return { rows: 1, columns };
  // On AMD four rows would leave registers for few subgroups.
  return { rows: w.dtype === "Q4_K" && capabilities.vendorId === nvidia ? 4 : 2, columns };
}

/** Rows that do not repay the time that a processor's driver takes for long shaders. */
const cpuFewRows = 16;

/** A processor takes activations one by one, so that each should serve several rows of weights. */
function cpuPatch({ gated }: Linear): Patch {
  return { rows: gated === undefined ? 4 : 2, columns: 4 };
}
