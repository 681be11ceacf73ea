/** Ways to lay out the products of a row's experts, among which measurements on a device choose. */
import type { Matrix } from "../tensor/tensor.ts";
import { subslice } from "../vulkan/buffer.ts";
import { stepsIn } from "./activations.ts";
import type { ExpertDown } from "./expert-down.ts";
import type { ExpertGateUp } from "./expert-gate-up.ts";
import type { DeviceContext, KernelContext } from "./kernel.ts";
import { invocationsMax, subgroupsMax } from "./linear-contest.ts";
import { teamOf } from "./reduction.ts";
import { contestChoices, type Contest, type ContestMemory, type Tunings } from "./tunings.ts";

export interface ExpertTuning {
  /** Results that a team of lanes computes at once. */
  readonly rows: number;
  /** Subgroups in a workgroup. */
  readonly subgroups: number;
}

/** Rows of two matrices fill the registers. */
const rowsMost = 4;

/** Steps away from the usual layout: factors, those that promise most first. */
const steps: readonly ExpertTuning[] = [
  { rows: 2, subgroups: 1 },
  { rows: 1 / 2, subgroups: 1 },
  { rows: 1, subgroups: 2 },
  { rows: 1, subgroups: 1 / 2 },
  { rows: 1, subgroups: 4 },
  { rows: 1, subgroups: 1 / 4 },
  { rows: 2, subgroups: 1 / 2 },
  { rows: 1 / 2, subgroups: 2 },
];

/** The usual layout, and its neighbours that fit. `results`: of an expert. */
export function expertCandidates(
  context: DeviceContext,
  results: number,
  usual: ExpertTuning,
): readonly ExpertTuning[] {
  const { workgroupInvocations } = context.capabilities.limits;
  const invocations = Math.min(workgroupInvocations, invocationsMax);
  const subgroupsMost = Math.min(subgroupsMax, invocations / teamOf(context).lanes);
  const neighbours = steps.map((step) => ({
    rows: usual.rows * step.rows,
    subgroups: usual.subgroups * step.subgroups,
  }));
  const fitting = neighbours.filter(
    ({ rows, subgroups }) =>
      Number.isInteger(rows) &&
      Number.isInteger(subgroups) &&
      rows <= rowsMost &&
      subgroups <= subgroupsMost &&
      // More results than there are would leave teams idle.
      rows * subgroups <= Math.max(results, usual.rows * usual.subgroups),
  );
  return [usual, ...fitting];
}

/** `launch` is `expertGateUp` itself, `results` those of an expert. */
export function expertGateUpContest(
  context: DeviceContext,
  args: ExpertGateUp & { readonly results: number },
  usual: ExpertTuning,
  launch: (context: KernelContext, args: ExpertGateUp) => void,
): Contest<ExpertTuning> {
  const { results, ...product } = args;
  const { gate, up, alone = false, slots, activation, yActivation = "float" } = product;
  const isCode = yActivation === "int8";
  const kind = alone ? "alone" : up === undefined ? "merged" : "apart";
  const outputBytes = slots * results * 4;
  const yIn = ({ outputs }: ContestMemory) => subslice(outputs, 0, outputBytes);
  return {
    key: `expert_gate_up ${shapeOf(gate, product)} ${kind}, of ${activation}, to ${yActivation}`,
    weightBytes: chosenBytes(up === undefined ? [gate] : [gate, up], product),
    candidates: expertCandidates(context, results, usual),
    inputBytes: gate.columns * 4,
    outputBytes,
    record(own, tuning, memory) {
      const x = subslice(memory.inputs, 0, gate.columns * 4);
      const { choices, step } = memory;
      launch(own, { ...product, x, y: yIn(memory), choices, step, tuning });
    },
    results: (memory) => (isCode ? stepsIn(yIn(memory), slots, results) : yIn(memory)),
  };
}

/** `launch` is `expertDown` itself. */
export function expertDownContest(
  context: DeviceContext,
  args: ExpertDown,
  usual: ExpertTuning,
  launch: (context: KernelContext, args: ExpertDown) => void,
): Contest<ExpertTuning> {
  const { down, experts, slots, activation } = args;
  const results = down.rows / experts;
  const inputBytes = slots * down.columns * 4;
  const yIn = ({ outputs }: ContestMemory) => subslice(outputs, 0, results * 4);
  return {
    key: `expert_down ${shapeOf(down, args)}, of ${activation}`,
    weightBytes: chosenBytes([down], args),
    candidates: expertCandidates(context, results, usual),
    inputBytes,
    outputBytes: results * 4,
    record(own, tuning, memory) {
      const x = subslice(memory.inputs, 0, inputBytes);
      const { choices, step } = memory;
      // Sums would grow from run to run.
      launch(own, { ...args, x, y: yIn(memory), choices, step, tuning, accumulate: false });
    },
    results: yIn,
  };
}

/** Whether somebody measures such work: for one row, with no more experts than a race chooses. */
export function isMeasured(
  context: KernelContext,
  { rowCapacity, slots }: { readonly rowCapacity: number; readonly slots: number },
): context is KernelContext & { readonly tunings: Tunings } {
  return context.tunings !== undefined && rowCapacity === 1 && slots <= contestChoices;
}

interface Mixture {
  readonly experts: number;
  /** Experts of a row. */
  readonly slots: number;
}

/** "Q4_K 8 of 256 512x2048" */
function shapeOf({ dtype, rows, columns }: Matrix, { experts, slots }: Mixture): string {
  return `${dtype} ${slots} of ${experts} ${rows / experts}x${columns}`;
}

/** Of the experts that a row goes to. */
function chosenBytes(matrices: readonly Matrix[], { experts, slots }: Mixture): number {
  const planes = matrices.flatMap((matrix) => matrix.planes);
  return planes.reduce((sum, { byteSize }) => sum + byteSize, 0) * (slots / experts);
}
