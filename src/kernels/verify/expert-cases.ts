/** Router and experts: every way to score, and products of every type. */
import { dequantize } from "../../tensor/dequantize.ts";
import { blockFormats, dtypes, type DType } from "../../tensor/dtype.ts";
import type { Matrix } from "../../tensor/tensor.ts";
import type { BufferSlice } from "../../vulkan/buffer.ts";
import type { ExpertActivation } from "../activations.ts";
import { expertChoice, choiceWords, type Routing } from "../expert-choice.ts";
import type { ExpertTuning } from "../expert-contest.ts";
import { expertDown } from "../expert-down.ts";
import { expertGateUp } from "../expert-gate-up.ts";
import type { GateFunction } from "../gate.ts";
import { quantize } from "../quantize.ts";
import { reductions, relativeError, sumBound, type Force, type VerifyCase } from "./case.ts";
import { readCodes } from "./codes.ts";
import { choiceReference } from "./expert-reference.ts";
import { Random, randomBlocks } from "./random.ts";
import { dot } from "./recurrent-reference.ts";
import { gluReference } from "./reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

interface ChoiceInput extends Routing {
  /** What the logits of a row are drawn from. */
  readonly from: readonly [low: number, high: number];
  readonly bias?: boolean;
  readonly factors?: boolean;
  /** All logits are the same. */
  readonly even?: boolean;
}

const rows = 3;
const capacity = 4;

function choiceCase(input: ChoiceInput, force: Force, variant: string): Omit<VerifyCase, "needs"> {
  const { from, bias = false, factors = false, even = false, ...routing } = input;
  const { experts, used, scoring, normalize, scale } = routing;
  const details = [
    `${used} of ${experts}`,
    `logits from ${from[0]} to ${from[1]}`,
    ...(bias ? ["bias"] : []),
    ...(factors ? ["factors"] : []),
    ...(even ? ["all equal"] : []),
    ...(normalize ? ["normalized"] : []),
    ...(scale === 1 ? [] : [`times ${scale}`]),
  ];
  return {
    kernel: "expert_choice",
    variant: `${scoring} ${variant}`,
    name: details.join(", "),
    bound: 1e-5,
    run(bench) {
      const random = new Random(experts + used);
      const logits = random
        .floats(capacity * experts)
        .map(() => (even ? from[0] : random.between(...from)));
      const offsets = random.floats(experts, 0.5);
      const scales = random.floats(experts, 2);
      const choices = bench.floats(capacity * choiceWords(used));
      bench.run((context) =>
        expertChoice(
          { ...context, force },
          {
            logits: bench.upload(logits),
            routing,
            choices,
            step: uploadStep(bench, plainRows(rows), { capacity }),
            rowCapacity: capacity,
            ...(bias ? { bias: bench.vector("bias", offsets) } : {}),
            ...(factors ? { factors: bench.vector("factors", scales) } : {}),
          },
        ),
      );
      const weights = bench.read(choices, rows * choiceWords(used));
      const words = new Uint32Array(weights.buffer);
      const expected = Array.from({ length: rows }, (_unused, row) =>
        choiceReference(
          logits.subarray(row * experts, (row + 1) * experts),
          routing,
          bias ? offsets : undefined,
          factors ? scales : undefined,
        ),
      ).flat();
      const isRight = expected.every(({ expert }, i) => words[2 * i] === expert);
      if (!isRight) return Number.POSITIVE_INFINITY;
      return relativeError(
        expected.map((_choice, i) => weights[2 * i + 1] ?? Number.NaN),
        expected.map(({ weight }) => weight),
      );
    },
  };
}

const plain = { scoring: "softmax", normalize: true, scale: 1, from: [-4, 4] } as const;

const choiceInputs: readonly ChoiceInput[] = [
  { ...plain, experts: 16, used: 4 },
  // The running maximum must not begin at 0.
  { ...plain, experts: 128, used: 8, from: [-90, -50] },
  { ...plain, experts: 60, used: 4, normalize: false },
  { ...plain, experts: 512, used: 10, from: [-30, 60] },
  { ...plain, experts: 256, used: 16, even: true },
  { ...plain, experts: 5, used: 5, scale: 2.5 },
  { ...plain, experts: 40, used: 6, factors: true },
  { ...plain, experts: 1, used: 1 },
  { ...plain, experts: 64, used: 6, scoring: "sigmoid", bias: true, scale: 1.8 },
  { ...plain, experts: 100, used: 3, scoring: "sigmoid", normalize: false, from: [-60, -20] },
  { ...plain, experts: 32, used: 4, scoring: "softmax of the chosen", from: [-200, -100] },
  { ...plain, experts: 32, used: 4, scoring: "softmax of the chosen", bias: true },
];

/** Sizes of a small mixture: expert rows, width in blocks. */
interface ExpertInput {
  readonly dtype: DType;
  readonly tuning?: ExpertTuning;
  readonly experts: number;
  readonly results: number;
  readonly blocks: number;
}

/** The experts of three rows; they meet the first and the last, and one twice. */
const chosen = [
  [4, 0],
  [2, 4],
  [1, 3],
] as const;
const slots = 2;
const shares = [0.75, 0.25, 1.5, -0.5, 0.1, 0.9];

function uploadChoices(bench: Workbench) {
  const words = new Uint32Array(capacity * choiceWords(slots));
  const floats = new Float32Array(words.buffer);
  chosen.flat().forEach((expert, i) => {
    words[2 * i] = expert;
    floats[2 * i + 1] = shares[i] ?? 0;
  });
  return bench.upload(words);
}

/** A matrix of random blocks and its rows as floats. */
function randomMatrix(
  bench: Workbench,
  name: string,
  dtype: DType,
  count: number,
  width: number,
  random: Random,
): { matrix: Matrix; rowAt: (row: number) => Float32Array } {
  const blocks = randomBlocks(dtype, (count * width) / blockFormats[dtype].blockValues, random);
  const values = dequantize(dtype, blocks);
  return {
    matrix: bench.matrix(name, dtype, count, width, blocks),
    rowAt: (row) => values.subarray(row * width, (row + 1) * width),
  };
}

const widthOf = (dtype: DType, blocks: number) =>
  blocks * Math.max(blockFormats[dtype].blockValues, 8);

/** Activations as they are, or the codes that stand for them, and what those stand for. */
export function prepareRows(
  bench: Workbench,
  values: Float32Array,
  width: number,
  activation: ExpertActivation,
): { x: BufferSlice; read: Float32Array } {
  const floats = bench.upload(values);
  if (activation === "float") return { x: floats, read: values };
  const count = values.length / width;
  const x = bench.floats(values.length);
  const step = uploadStep(bench, plainRows(count), { capacity: count });
  bench.run((context) => quantize(context, { x: floats, y: x, width, step, rowCapacity: count }));
  return { x, read: readCodes(bench, x, count, count, width) };
}

export interface GateUpInput extends ExpertInput {
  /** `merged`: gate and up are one tensor; `alone`: no up at all. */
  readonly kind: "apart" | "merged" | "alone";
  readonly gateFunction: GateFunction;
  readonly activation: ExpertActivation;
  readonly biased?: true;
  readonly quantizes?: true;
}

/** The largest relative error. */
export function runGateUp(bench: Workbench, input: GateUpInput, force: Force): number {
  const { dtype, experts, results, blocks, kind, gateFunction, biased, quantizes } = input;
  const { tuning } = input;
  const width = widthOf(dtype, blocks);
  const random = new Random(results + blocks);
  const { activation } = input;
  const { x, read } = prepareRows(bench, random.floats(capacity * width), width, activation);
  const perExpert = kind === "merged" ? 2 * results : results;
  const gate = randomMatrix(bench, "gate", dtype, experts * perExpert, width, random);
  const up = randomMatrix(bench, "up", dtype, experts * results, width, random);
  const gateBias = random.floats(experts * perExpert, biased ? 5 : 0);
  const upBias = random.floats(experts * results, biased ? 5 : 0);
  const y = bench.floats(capacity * slots * results);
  bench.run((context) =>
    expertGateUp(
      { ...context, force },
      {
        gate: gate.matrix,
        ...(kind === "apart" && { up: up.matrix }),
        ...(biased && { gateBias: bench.vector("gate bias", gateBias) }),
        ...(biased && kind === "apart" && { upBias: bench.vector("up bias", upBias) }),
        alone: kind === "alone",
        gateFunction,
        activation,
        ...(quantizes && { yActivation: "int8" }),
        ...{ experts, tuning },
        x,
        y,
        choices: uploadChoices(bench),
        slots,
        step: uploadStep(bench, plainRows(rows), { capacity }),
        rowCapacity: capacity,
      },
    ),
  );
  const products = (from: typeof gate, bias: Float32Array, first: number, own: Float32Array) =>
    Array.from({ length: results }, (_unused, i) => {
      return dot(from.rowAt(first + i), own) + (bias[first + i] ?? 0);
    });
  const expected = chosen.flatMap((pair, row) =>
    pair.flatMap((expert) => {
      const own = read.subarray(row * width, (row + 1) * width);
      const gates = products(gate, gateBias, expert * perExpert, own);
      if (kind === "alone") return gates;
      const ups =
        kind === "merged"
          ? products(gate, gateBias, expert * perExpert + results, own)
          : products(up, upBias, expert * results, own);
      return Array.from(gluReference(gates, ups, gateFunction));
    }),
  );
  const actual = quantizes
    ? readCodes(bench, y, capacity * slots, rows * slots, results)
    : bench.read(y, expected.length);
  return relativeError(actual, expected);
}

export interface DownInput extends ExpertInput {
  readonly activation: ExpertActivation;
  /** Biased, and not added to what is there. */
  readonly alone?: boolean;
}

/** The same. */
export function runDown(bench: Workbench, input: DownInput, force: Force): number {
  const { dtype, experts, results, blocks, activation, alone = false, tuning } = input;
  const width = widthOf(dtype, blocks);
  const random = new Random(results + blocks);
  const values = random.floats(capacity * slots * width);
  const { x, read } = prepareRows(bench, values, width, activation);
  const before = random.floats(capacity * results);
  const down = randomMatrix(bench, "down", dtype, experts * results, width, random);
  const bias = random.floats(experts * results, alone ? 5 : 0);
  const y = bench.upload(before);
  bench.run((context) =>
    expertDown(
      { ...context, force },
      {
        down: down.matrix,
        ...(alone && { bias: bench.vector("down bias", bias), accumulate: false }),
        ...{ experts, tuning },
        x,
        activation,
        y,
        choices: uploadChoices(bench),
        slots,
        step: uploadStep(bench, plainRows(rows), { capacity }),
        rowCapacity: capacity,
      },
    ),
  );
  const expected = chosen.flatMap((pair, row) =>
    Array.from({ length: results }, (_unused, r) =>
      pair.reduce(
        (sum, expert, slot) => {
          const at = row * slots + slot;
          const from = expert * results + r;
          const product = dot(down.rowAt(from), read.subarray(at * width, (at + 1) * width));
          return sum + (shares[at] ?? 0) * (product + (bias[from] ?? 0));
        },
        alone ? 0 : (before[row * results + r] ?? 0),
      ),
    ),
  );
  return relativeError(bench.read(y, expected.length), expected);
}

const size = { experts: 5, results: 13, blocks: 3 } as const;

const nameOf = ({ experts, results, blocks }: typeof size | ExpertInput) =>
  `2 of ${experts} experts, 3 of 4 rows, ${results} results of ${blocks} blocks`;

function gateUpCase(
  input: Omit<GateUpInput, keyof typeof size> & Partial<GateUpInput>,
  force: Force,
  variant: string,
) {
  const { dtype, kind, gateFunction, activation, biased, quantizes } = input;
  const details = [kind, gateFunction, ...(biased ? ["biased"] : [])];
  return {
    kernel: "expert_gate_up",
    variant: `${dtype} ${activation} ${variant}`,
    name: [nameOf({ ...size, ...input }), ...details, ...(quantizes ? ["quantized"] : [])].join(
      ", ",
    ),
    // Half a step of 127 of the largest value in a block is the rounding itself.
    bound: quantizes ? 0.05 : sumBound,
    run: (bench: Workbench) => runGateUp(bench, { ...size, ...input }, force),
  };
}

function downCase(input: Omit<DownInput, keyof typeof size>, force: Force, variant: string) {
  const { dtype, activation, alone } = input;
  return {
    kernel: "expert_down",
    variant: `${dtype} ${activation} ${variant}`,
    name: alone ? `${nameOf(size)}, biased, not added` : nameOf(size),
    bound: sumBound,
    run: (bench: Workbench) => runDown(bench, { ...size, ...input }, force),
  };
}

export function activationsOf(dtype: DType): readonly ExpertActivation[] {
  return dtype === "F32" || dtype === "F16" || dtype === "BF16" ? ["float"] : ["float", "int8"];
}

/** The three kinds differ in where weights lie, which is the same for all types. */
const kinds = ["apart", "merged", "alone"] as const;

function expertCases(dtype: DType, i: number): VerifyCase[] {
  return reductions.flatMap(({ variant, force, ...rest }, j) =>
    activationsOf(dtype).flatMap((activation, k) => {
      const kind = kinds[(i + j + k) % kinds.length] ?? "apart";
      return [
        gateUpCase({ dtype, activation, kind, gateFunction: "silu" }, force, variant),
        downCase({ dtype, activation }, force, variant),
      ].map((verifyCase) => ({ ...verifyCase, ...rest }));
    }),
  );
}

const plainGate = { kind: "merged", gateFunction: "clamped", activation: "float" } as const;
const quantizing = { results: 96, activation: "int8", quantizes: true } as const;

const extras: readonly VerifyCase[] = reductions.flatMap(({ variant, force, ...rest }) =>
  [
    gateUpCase({ ...plainGate, dtype: "MXFP4", kind: "apart", biased: true }, force, variant),
    gateUpCase({ ...plainGate, dtype: "Q4_K", gateFunction: "gelu" }, force, variant),
    gateUpCase({ ...plainGate, dtype: "F32", biased: true }, force, variant),
    gateUpCase(
      { ...plainGate, dtype: "F32", kind: "alone", gateFunction: "silu", biased: true },
      force,
      variant,
    ),
    gateUpCase({ ...plainGate, ...quantizing, dtype: "Q4_K", kind: "apart" }, force, variant),
    gateUpCase({ ...plainGate, ...quantizing, dtype: "Q8_0", biased: true }, force, variant),
    downCase({ dtype: "MXFP4", activation: "float", alone: true }, force, variant),
    downCase({ dtype: "Q5_K", activation: "int8", alone: true }, force, variant),
  ].map((verifyCase) => ({ ...verifyCase, ...rest })),
);

export const expertVerifyCases: readonly VerifyCase[] = [
  ...reductions.flatMap(({ variant, force, ...rest }) =>
    choiceInputs.map((input) => ({ ...choiceCase(input, force, variant), ...rest })),
  ),
  ...dtypes.flatMap(expertCases),
  ...extras,
];
