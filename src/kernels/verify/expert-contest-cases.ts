/** All layouts of experts' products among which a measurement may choose. */
import { expertCandidates, type ExpertTuning } from "../expert-contest.ts";
import { sumBound, type VerifyCase } from "./case.ts";
import { runDown, runGateUp, type DownInput, type GateUpInput } from "./expert-cases.ts";
import type { Workbench } from "./workbench.ts";

/** The usual ones of a GPU. */
const usual: ExpertTuning = { rows: 2, subgroups: 1 };
const usualQuantizing: ExpertTuning = { rows: 2, subgroups: 16 };

const gateUps: readonly (GateUpInput & { bound?: number })[] = [
  {
    ...{ dtype: "Q6_K", experts: 5, results: 96, blocks: 3, kind: "apart", gateFunction: "silu" },
    // Half a step of the largest value in a block.
    ...{ activation: "int8", quantizes: true, bound: 0.05 },
  },
  {
    ...{ dtype: "F16", experts: 5, results: 13, blocks: 20, kind: "merged", gateFunction: "gelu" },
    ...{ activation: "float", biased: true },
  },
];

const downs: readonly DownInput[] = [
  { dtype: "Q5_K", experts: 5, results: 13, blocks: 3, activation: "int8" },
  { dtype: "Q8_0", experts: 5, results: 45, blocks: 20, activation: "float", alone: true },
];

/** The largest error of all neighbours of a layout. */
function worst(
  { gpu }: Workbench,
  results: number,
  from: ExpertTuning,
  run: (tuning: ExpertTuning) => number,
): number {
  return Math.max(...expertCandidates(gpu.device, results, from).map(run));
}

export const expertContestCases: readonly VerifyCase[] = [
  ...gateUps.map(({ bound = sumBound, ...input }) => ({
    kernel: "expert_gate_up",
    variant: `${input.dtype} ${input.activation} in all layouts`,
    name: `${input.kind}, ${input.results} results of ${input.blocks} blocks`,
    bound,
    run: (bench: Workbench) =>
      worst(bench, input.results, input.quantizes ? usualQuantizing : usual, (tuning) =>
        runGateUp(bench, { ...input, tuning }, {}),
      ),
  })),
  ...downs.map((input) => ({
    kernel: "expert_down",
    variant: `${input.dtype} ${input.activation} in all layouts`,
    name: `${input.results} results of ${input.blocks} blocks`,
    bound: sumBound,
    run: (bench: Workbench) =>
      worst(bench, input.results, usual, (tuning) => runDown(bench, { ...input, tuning }, {})),
  })),
];
