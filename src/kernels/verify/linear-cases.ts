/** Linear layers of every type in float and int8 arithmetic; the quantization of activations. */
import { dequantize } from "../../tensor/dequantize.ts";
import { blockFormats, dtypes, type DType } from "../../tensor/dtype.ts";
import type { ActivationKind } from "../activations.ts";
import { linear, type LinearTuning } from "../linear.ts";
import { quantize } from "../quantize.ts";
import { reductions, relativeError, sumBound, type Force, type VerifyCase } from "./case.ts";
import { readCodes } from "./codes.ts";
import { widthOf } from "./matmul-cases.ts";
import { Random, randomBlocks } from "./random.ts";
import { gluReference, matmulReference, rmsNormReference } from "./reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

export interface LinearInput {
  readonly dtype: DType;
  readonly activation: ActivationKind;
  readonly rows: number;
  readonly blocks: number;
  readonly columns: number;
  readonly capacity: number;
  readonly tuning: LinearTuning;
  readonly norm?: boolean;
  /** With `norm`: width of the heads that are normed apart and gated. */
  readonly head?: number;
  readonly gated?: boolean;
  readonly bias?: boolean;
  readonly accumulate?: boolean;
  /** Each row's results are scaled by a sigmoid. */
  readonly switched?: boolean;
  readonly quantizes?: boolean;
}

const epsilon = 1e-5;

/** Random numbers for all that goes in. */
function dataOf({ dtype, rows, blocks, capacity }: LinearInput) {
  const width = widthOf(dtype, blocks);
  const random = new Random(rows * 31 + width);
  const blockCount = (rows * width) / blockFormats[dtype].blockValues;
  return {
    width,
    weights: randomBlocks(dtype, blockCount, random),
    upWeights: randomBlocks(dtype, blockCount, random),
    x: random.floats(capacity * width, 4),
    normWeight: random.floats(width),
    offsets: random.floats(rows),
    before: random.floats(capacity * rows),
    rowSwitch: random.floats(capacity, 6),
    headGate: random.floats(width, 6),
  };
}

/** The largest relative error. */
export function runLinear(bench: Workbench, input: LinearInput, force: Force): number {
  const { dtype, activation, rows, columns, capacity, tuning } = input;
  const { norm, gated, bias, accumulate = false, switched, quantizes } = input;
  const data = dataOf(input);
  const { width } = data;
  const w = bench.matrix("w", dtype, rows, width, data.weights);
  const up = bench.matrix("up", dtype, rows, width, data.upWeights);
  const y = accumulate ? bench.upload(data.before) : bench.floats(capacity * rows);
  const step = uploadStep(bench, plainRows(columns), { capacity });
  const floats = bench.upload(data.x);
  const prepared = bench.floats(capacity * width);
  const weight = bench.vector("norm", data.normWeight.subarray(0, input.head ?? width));
  const gate = input.head === undefined ? undefined : bench.upload(data.headGate);
  const normedHeads = bench.upload(normedOf(input, data));
  bench.run((plain) => {
    const context = { ...plain, force };
    if (activation === "int8") {
      const rows = { width, step, rowCapacity: capacity };
      const rule = norm && gate === undefined ? { norm: { weight, epsilon } } : {};
      quantize(context, { x: gate ? normedHeads : floats, y: prepared, ...rows, ...rule });
    }
    linear(context, {
      w,
      activation,
      y,
      step,
      rowCapacity: capacity,
      accumulate,
      tuning,
      x: norm || activation === "float" ? floats : prepared,
      ...(gated && { gated: { up, gate: "silu" } }),
      ...(norm && { norm: { weight, epsilon, gate } }),
      ...(bias && { bias: bench.vector("bias", data.offsets) }),
      ...(switched && { rowSwitch: bench.upload(data.rowSwitch) }),
      ...(quantizes && { yActivation: "int8" }),
    });
  });
  const actual = quantizes
    ? readCodes(bench, y, capacity, columns, rows)
    : bench.read(y, columns * rows);
  const codes =
    activation === "float" ? undefined : readCodes(bench, prepared, capacity, columns, width);
  return relativeError(actual, linearReference(input, data, codes));
}

/** What the product reads after its norm. */
function normedOf({ norm, head }: LinearInput, data: ReturnType<typeof dataOf>): Float32Array {
  const { x, normWeight, headGate } = data;
  if (norm !== true) return x;
  if (head === undefined) return Float32Array.from(rmsNormReference(x, normWeight, epsilon));
  const weight = normWeight.subarray(0, head);
  const normed = Array.from({ length: x.length / head }, (_unused, i) =>
    Array.from(rmsNormReference(x.subarray(i * head, (i + 1) * head), weight, epsilon)),
  ).flat();
  return Float32Array.from(normed, (value, i) => {
    const gate = headGate[i] ?? Number.NaN;
    return (value * gate) / (1 + Math.exp(-gate));
  });
}

/** `codes`: what the product really read; the rounding of activations has its own case. */
function linearReference(
  input: LinearInput,
  data: ReturnType<typeof dataOf>,
  codes: Float32Array | undefined,
): Float64Array {
  const { dtype, rows, columns, gated, bias, accumulate, switched } = input;
  const { width, weights, upWeights, offsets, before } = data;
  const normed = normedOf(input, data);
  const product = (blocks: Uint8Array) =>
    matmulReference(dequantize(dtype, blocks), codes ?? normed, rows, width, columns);
  const result = gated
    ? gluReference(product(weights), product(upWeights), "silu")
    : product(weights);
  const share = (row: number) =>
    switched ? 1 / (1 + Math.exp(-(data.rowSwitch[row] ?? Number.NaN))) : 1;
  return result.map(
    (value, i) =>
      (value + (bias ? (offsets[i % rows] ?? 0) : 0)) * share(Math.floor(i / rows)) +
      (accumulate ? (before[i] ?? 0) : 0),
  );
}

const plain: LinearTuning = { lanes: 8, rows: 1, columns: 1, subgroups: 1, passes: 1 };

/** Inputs of every type and arithmetic. */
const inputs: readonly (Omit<LinearInput, "dtype" | "activation"> & {
  name: string;
  bound?: number;
})[] = [
  {
    name: "65 rows of 3 blocks, 4 lanes, bias",
    rows: 65,
    blocks: 3,
    columns: 1,
    capacity: 1,
    bias: true,
    tuning: { ...plain, lanes: 4 },
  },
  {
    name: "63 rows of 5 blocks, 2 rows each, 3 of 4 columns, switched, added",
    rows: 63,
    blocks: 5,
    columns: 3,
    capacity: 4,
    accumulate: true,
    switched: true,
    tuning: { ...plain, rows: 2, columns: 4 },
  },
];

/** Inputs that try what is fused; for a few types, because unpacking does not matter here. */
const fusedInputs: typeof inputs = [
  {
    name: "129 rows of 4 blocks, normed, 2 subgroups, 3 passes",
    rows: 129,
    blocks: 4,
    columns: 1,
    capacity: 1,
    norm: true,
    tuning: { ...plain, rows: 2, subgroups: 2, passes: 3 },
  },
  {
    name: "96 rows of 4 blocks, normed and gated",
    rows: 96,
    blocks: 4,
    columns: 1,
    capacity: 1,
    norm: true,
    gated: true,
    tuning: { ...plain, rows: 4, passes: 2 },
  },
  {
    name: "gated, 5 of 8 columns in groups of 2",
    rows: 33,
    blocks: 8,
    columns: 5,
    capacity: 8,
    gated: true,
    tuning: { ...plain, columns: 2 },
  },
];

const extraInputs: typeof inputs = [
  {
    name: "70 rows of 4 blocks, heads of 32 normed and gated, added",
    rows: 70,
    blocks: 4,
    columns: 1,
    capacity: 1,
    norm: true,
    head: 32,
    accumulate: true,
    tuning: { ...plain, rows: 2, subgroups: 2 },
  },
  {
    name: "33 rows of 20 blocks, shared by 4 teams, 2 columns, 2 passes",
    rows: 33,
    blocks: 20,
    columns: 2,
    capacity: 2,
    tuning: { ...plain, rows: 2, columns: 2, subgroups: 8, split: 4, passes: 2 },
  },
  {
    name: "40 rows of 20 blocks, normed and gated, shared by 2 teams",
    rows: 40,
    blocks: 20,
    columns: 1,
    capacity: 1,
    norm: true,
    gated: true,
    tuning: { ...plain, rows: 2, subgroups: 2, split: 2 },
  },
];

/** Some devices count no more than 65,535 workgroups. */
const tallInput: (typeof inputs)[number] = {
  name: "65,600 rows of 1 block",
  rows: 65_600,
  blocks: 1,
  columns: 1,
  capacity: 1,
  tuning: plain,
};

const quantizingInput: (typeof inputs)[number] = {
  name: "96 rows of 4 blocks, gated, quantized, 2 columns",
  rows: 96,
  blocks: 4,
  columns: 2,
  capacity: 2,
  gated: true,
  quantizes: true,
  tuning: { ...plain, rows: 2, columns: 2, subgroups: 2, passes: 32 },
  // Half a step of 127 of the largest value in a block is the rounding itself.
  bound: 0.05,
};

function linearCase(
  dtype: DType,
  activation: ActivationKind,
  input: (typeof inputs)[number],
): VerifyCase[] {
  return reductions.map(({ variant, force, ...rest }) => ({
    kernel: "linear",
    variant: `${dtype} ${activation} ${variant}`,
    name: input.name,
    bound: input.bound ?? (input.norm === true && activation === "int8" ? 5e-3 : sumBound),
    ...rest,
    run: (bench) => runLinear(bench, { ...input, dtype, activation }, force),
  }));
}

function quantizeCase(norm: boolean): VerifyCase[] {
  const width = 608;
  return reductions.map(({ variant, force, ...rest }) => ({
    kernel: "quantize",
    variant: `${norm ? "normed" : "plain"} ${variant}`,
    name: `2 of 3 rows, width ${width}, one block of zeros`,
    // Half a step, relative to the root mean square of uniform values.
    bound: (0.5 / 127) * Math.sqrt(3) * 1.01,
    ...rest,
    run(bench) {
      const random = new Random(width);
      const x = random.floats(3 * width, 1000);
      x.fill(0, 64, 96);
      const weight = random.floats(width).map((value) => (norm ? Math.sign(value) : 1));
      const y = bench.floats(3 * width);
      const step = uploadStep(bench, plainRows(2), { capacity: 3 });
      bench.run((context) =>
        quantize(
          { ...context, force },
          {
            x: bench.upload(x),
            y,
            width,
            step,
            rowCapacity: 3,
            ...(norm && { norm: { weight: bench.vector("norm", weight), epsilon } }),
          },
        ),
      );
      const expected = norm ? rmsNormReference(x, weight, epsilon) : x;
      return relativeError(
        readCodes(bench, y, 3, 2, width),
        Array.from(expected).slice(0, 2 * width),
      );
    },
  }));
}

const isPlain = (dtype: DType) => blockFormats[dtype].blockValues === 1;

export const linearCases: readonly VerifyCase[] = [
  ...quantizeCase(false),
  ...quantizeCase(true),
  ...dtypes.flatMap((dtype) =>
    (isPlain(dtype) ? (["float"] as const) : (["float", "int8"] as const)).flatMap((activation) => [
      ...inputs.flatMap((input) => linearCase(dtype, activation, input)),
      ...(["F16", "Q4_K", "Q8_0"].includes(dtype)
        ? fusedInputs.flatMap((input) => linearCase(dtype, activation, input))
        : []),
      ...(dtype === "F16" ? linearCase(dtype, activation, tallInput) : []),
      ...(["F16", "Q5_K"].includes(dtype)
        ? extraInputs.flatMap((input) => linearCase(dtype, activation, input))
        : []),
      ...(["Q6_K", "Q8_0"].includes(dtype) && activation === "int8"
        ? linearCase(dtype, activation, quantizingInput)
        : []),
    ]),
  ),
];
