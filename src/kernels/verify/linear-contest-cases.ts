/** All layouts of linear layers among which a measurement may choose. */
import { defaultTuning, type Linear, type LinearTuning } from "../linear.ts";
import { linearCandidates } from "../linear-contest.ts";
import { sumBound, type VerifyCase } from "./case.ts";
import { runLinear, type LinearInput } from "./linear-cases.ts";
import { widthOf } from "./matmul-cases.ts";
import type { Workbench } from "./workbench.ts";

type Input = Omit<LinearInput, "tuning" | "columns" | "capacity">;

const inputs: readonly (Input & { name: string; bound?: number })[] = [
  {
    name: "70 rows of 5 blocks, bias, added",
    ...{ dtype: "Q4_K", activation: "int8", rows: 70, blocks: 5 },
    ...{ bias: true, accumulate: true },
  },
  {
    name: "129 rows of 20 blocks, switched",
    ...{ dtype: "Q8_0", activation: "float", rows: 129, blocks: 20, switched: true },
  },
  {
    name: "129 rows of 4 blocks, normed",
    ...{ dtype: "Q6_K", activation: "int8", rows: 129, blocks: 4, norm: true, bound: 5e-3 },
  },
  {
    name: "70 rows of 4 blocks, heads of 32 normed and gated",
    ...{ dtype: "Q5_K", activation: "float", rows: 70, blocks: 4, norm: true, head: 32 },
  },
  {
    name: "63 rows of 20 blocks, normed and gated",
    ...{ dtype: "F16", activation: "float", rows: 63, blocks: 20, norm: true, gated: true },
  },
  {
    name: "160 rows of 4 blocks, normed and gated, quantized",
    ...{ dtype: "Q4_K", activation: "int8", rows: 160, blocks: 4, norm: true, gated: true },
    // Half a step of the largest value in a block, as with `linear` itself.
    ...{ quantizes: true, bound: 0.05 },
  },
];

/** Those of a GPU; a processor starts elsewhere and takes the same steps. */
function layoutsOf(bench: Workbench, input: Input): readonly LinearTuning[] {
  const { dtype, activation, rows, blocks, norm, head, gated, quantizes } = input;
  const width = widthOf(dtype, blocks);
  const w = { name: "w", dtype, rows, columns: width, planes: [] };
  const nothing = bench.floats(0);
  const weight = { name: "norm", length: head ?? width, data: nothing };
  const args: Linear = {
    ...{ w, activation, x: nothing, y: nothing, step: nothing, rowCapacity: 1 },
    ...(norm && { norm: { weight, epsilon: 1e-5, ...(head && { gate: nothing }) } }),
    ...(gated && { gated: { up: w, gate: "silu" } }),
    ...(quantizes && { yActivation: "int8" }),
  };
  const capabilities = { ...bench.gpu.device.capabilities, kind: "discrete" as const };
  return linearCandidates({ capabilities }, args, defaultTuning({ capabilities }, args));
}

export const linearContestCases: readonly VerifyCase[] = inputs.map((input) => ({
  kernel: "linear",
  variant: `${input.dtype} ${input.activation} in all layouts`,
  name: input.name,
  bound: input.bound ?? sumBound,
  run(bench) {
    const shared = { ...input, columns: 1, capacity: 1 };
    const errors = layoutsOf(bench, input).map((tuning) =>
      runLinear(bench, { ...shared, tuning }, {}),
    );
    return Math.max(...errors);
  },
}));
