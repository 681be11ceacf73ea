/** Ways to lay out a linear layer for one row, among which measurements on a device choose. */
import { isDeepStrictEqual } from "node:util";
import { roundUp } from "../math.ts";
import { subslice } from "../vulkan/buffer.ts";
import { sliceAlignment } from "../vulkan/memory.ts";
import { stepsIn } from "./activations.ts";
import type { DeviceContext, KernelContext } from "./kernel.ts";
import type { Linear, LinearTuning } from "./linear.ts";
import { teamOf } from "./reduction.ts";
import type { Contest, ContestMemory } from "./tunings.ts";
import { unitValues } from "./unit-values.ts";

/** So many pipelines are made for a measurement of one shape. */
const candidatesMax = 10;
/** Of a workgroup; more of them would have too few registers each. */
export const invocationsMax = 512;
/** Of a workgroup, as many as devices allow at least where its size is asked for. */
export const subgroupsMax = 16;
/** Quads of the input that an invocation holds while it normalizes them. */
const inputQuadsMax = 16;

/** Steps away from the usual layout: factors, those that promise most first. */
const steps: readonly Partial<LinearTuning>[] = [
  { rows: 2 },
  { rows: 1 / 2 },
  { split: 2 },
  { split: 1 / 2 },
  { subgroups: 2 },
  { subgroups: 1 / 2 },
  { split: 1 / 2, subgroups: 1 / 2 },
  { passes: 2 },
  { passes: 1 / 2 },
  { rows: 2, split: 1 / 2 },
  { rows: 1 / 2, split: 2 },
  { subgroups: 4 },
  { split: 4 },
];

/** `launch` is `linear` itself. */
export function linearContest(
  context: DeviceContext,
  args: Linear,
  usual: LinearTuning,
  launch: (context: KernelContext, args: Linear) => void,
): Contest<LinearTuning> {
  const { w, gated } = args;
  const matrices = gated === undefined ? [w] : [w, gated.up];
  const planes = matrices.flatMap((matrix) => matrix.planes);
  return {
    key: keyOf(args),
    weightBytes: planes.reduce((sum, { byteSize }) => sum + byteSize, 0),
    candidates: linearCandidates(context, args, usual),
    inputBytes: 2 * roundUp(w.columns * 4, sliceAlignment) + 4,
    outputBytes: w.rows * 4,
    record: (own, tuning, memory) => launch(own, { ...within(memory, args), tuning }),
    results(memory) {
      const { y } = within(memory, args);
      return args.yActivation === "int8" ? stepsIn(y, 1, w.rows) : y;
    },
  };
}

/** "linear Q4_K 14336x4096 gated by silu, of normed int8, to int8" */
function keyOf({ w, gated, norm, activation, yActivation = "float" }: Linear): string {
  const heads = norm?.gate === undefined ? "" : ` heads of ${norm.weight.length}`;
  return (
    `linear ${w.dtype} ${w.rows}x${w.columns}` +
    `${gated === undefined ? "" : ` gated by ${gated.gate}`}` +
    `, of ${norm === undefined ? "" : "normed "}${activation}${heads}, to ${yActivation}`
  );
}

type Layout = Required<LinearTuning>;

/** The usual layout, and its neighbours that are right and not absurd. */
export function linearCandidates(
  context: DeviceContext,
  args: Linear,
  { split = 1, ...rest }: LinearTuning,
): readonly LinearTuning[] {
  const { lanes: teamLanes } = teamOf(context);
  const usual: Layout = { ...rest, split };
  const rowsMost = Math.max(args.w.rows, usual.passes * turnRowsOf(usual, teamLanes));
  const candidates = [usual];
  for (const step of steps) {
    const layout = stepFrom(usual, step, args, teamLanes);
    const isNew = !candidates.some((known) => isDeepStrictEqual(known, layout));
    // More rows than there are would leave teams idle.
    const isFull = layout.passes * turnRowsOf(layout, teamLanes) <= rowsMost;
    if (isNew && isFull && isSensible(layout, context, args)) candidates.push(layout);
  }
  return candidates.slice(0, candidatesMax);
}

function stepFrom(
  from: Layout,
  step: Partial<LinearTuning>,
  { yActivation }: Linear,
  teamLanes: number,
): Layout {
  const { lanes, columns } = from;
  const rows = from.rows * (step.rows ?? 1);
  const split = from.split * (step.split ?? 1);
  const least = (split * lanes) / teamLanes;
  const subgroups = Math.max(from.subgroups * (step.subgroups ?? 1), least);
  const passes = from.passes * (step.passes ?? 1);
  const layout = { lanes, rows, columns, subgroups, passes, split };
  if (yActivation !== "int8") return layout;
  // Whole blocks of results: as many as before, or as the step says.
  const wanted = roundUp(turnRowsOf(from, teamLanes) * passes, 32);
  return { ...layout, passes: Math.max(1, wanted / turnRowsOf(layout, teamLanes)) };
}

/** Rows of W that a workgroup computes in a turn. */
function turnRowsOf({ lanes, rows, subgroups, split }: Layout, teamLanes: number): number {
  return ((teamLanes * subgroups) / lanes / split) * rows;
}

/** What `linear` demands, and what keeps to registers and shared memory. */
function isSensible(layout: Layout, context: DeviceContext, args: Linear): boolean {
  const { lanes, rows, subgroups, passes, split } = layout;
  const { w, gated, norm, yActivation } = args;
  const { workgroupInvocations, sharedMemoryBytes } = context.capabilities.limits;
  const { lanes: teamLanes } = teamOf(context);
  const workgroup = teamLanes * subgroups;
  const teams = workgroup / lanes / split;
  const workgroupRows = turnRowsOf(layout, teamLanes) * passes;
  const units = w.columns / unitValues(w.dtype);
  return (
    [rows, subgroups, passes, split, teams].every((count) => Number.isInteger(count)) &&
    rows <= (gated === undefined ? 8 : 4) &&
    subgroups <= subgroupsMax &&
    workgroup <= Math.min(workgroupInvocations, invocationsMax) &&
    lanes * split <= Math.max(lanes, units) &&
    (yActivation !== "int8" || workgroupRows % 32 === 0) &&
    (norm === undefined || w.columns / 4 / workgroup <= inputQuadsMax) &&
    sharedBytes(layout, args, workgroup, workgroupRows) <= sharedMemoryBytes
  );
}

/** Of the shader: the normed input, the results, and sums that meet. */
function sharedBytes(
  { lanes, rows, split }: Layout,
  { w, norm, activation, yActivation }: Linear,
  workgroup: number,
  workgroupRows: number,
): number {
  const input = norm === undefined ? 0 : w.columns * (activation === "int8" ? 1.5 : 4);
  const results = yActivation === "int8" ? workgroupRows * 4 : 0;
  const parts = split === 1 ? 0 : (workgroup / lanes) * rows * 8;
  return input + results + parts + Math.max(workgroup * 4, 512) + 64;
}

/** The same work on memory that nobody else uses. */
function within({ inputs, outputs, step }: ContestMemory, args: Linear): Linear {
  const { w, norm, rowSwitch } = args;
  const stride = roundUp(w.columns * 4, sliceAlignment);
  const gate = subslice(inputs, stride, w.columns * 4);
  return {
    ...args,
    x: subslice(inputs, 0, w.columns * 4),
    y: subslice(outputs, 0, w.rows * 4),
    step,
    // Sums would grow from run to run.
    accumulate: false,
    ...(norm && { norm: { ...norm, ...(norm.gate && { gate }) } }),
    ...(rowSwitch && { rowSwitch: subslice(inputs, 2 * stride, 4) }),
  };
}
