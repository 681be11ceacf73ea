/** Experts of rows that are sorted by expert: the order itself, and products of every type. */
import { invariant } from "../../errors.ts";
import { dequantize } from "../../tensor/dequantize.ts";
import { blockFormats, dtypes, type DType } from "../../tensor/dtype.ts";
import type { BufferSlice } from "../../vulkan/buffer.ts";
import type { ExpertActivation } from "../activations.ts";
import { choiceWords } from "../expert-choice.ts";
import { expertDirect, type DirectExpertTuning } from "../expert-direct.ts";
import { expertGateUp } from "../expert-gate-up.ts";
import { expertMatmul, type ExpertTuning } from "../expert-matmul.ts";
import { expertOrder, orderWords, tileCapacityOf } from "../expert-order.ts";
import type { ExpertProduct } from "../expert-product.ts";
import { expertSum } from "../expert-sum.ts";
import type { GateFunction } from "../gate.ts";
import { halve } from "../halve.ts";
import type { KernelContext } from "../kernel.ts";
import { matrixUnitsOf } from "../matrix-units.ts";
import { reductions, relativeError, sumBound, type Force, type VerifyCase } from "./case.ts";
import { readCodes } from "./codes.ts";
import { activationsOf, prepareRows } from "./expert-cases.ts";
import { Random, randomBlocks } from "./random.ts";
import { dot } from "./recurrent-reference.ts";
import { gluReference } from "./reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

const slots = 3;

/** How many choices each expert gets: none, one, about a tile and several of them. */
const crowds = [0, 1, 15, 16, 17, 40, 0, 31];

/** The choices of rows, mixed; of the weights the signs differ, too. */
function mixedChoices(counts: readonly number[], random: Random) {
  const experts = counts.flatMap((count, expert) => Array.from({ length: count }, () => expert));
  for (let i = experts.length - 1; i > 0; i--) {
    const j = Math.floor(random.between(0, i + 1));
    const [a = 0, b = 0] = [experts[i], experts[j]];
    [experts[i], experts[j]] = [b, a];
  }
  return { experts, weights: random.floats(experts.length), rows: experts.length / slots };
}

type Choices = ReturnType<typeof mixedChoices>;

function uploadChoices(bench: Workbench, { experts, weights }: Choices, capacity: number) {
  const words = new Uint32Array(capacity * choiceWords(slots));
  const floats = new Float32Array(words.buffer);
  experts.forEach((expert, i) => {
    words[2 * i] = expert;
    floats[2 * i + 1] = weights[i] ?? 0;
  });
  return bench.upload(words);
}

/** Two rows that are not there lie behind those that are. */
const spareRows = 2;

function sort(bench: Workbench, choices: Choices, count: number, tile: number) {
  const rowCapacity = choices.rows + spareRows;
  const step = uploadStep(bench, plainRows(choices.rows), { capacity: rowCapacity });
  const order = bench.floats(rowCapacity * orderWords(slots));
  const rows = { step, rowCapacity };
  const sorted = { experts: count, order, tile, slots, rowCapacity };
  const slice = uploadChoices(bench, choices, rowCapacity);
  bench.run((context) => expertOrder(context, { ...sorted, choices: slice, step }));
  return { sorted, rows, choices: slice };
}

/** Whether tiles hold each choice once, under its expert. */
function isSorted(words: Uint32Array, choices: Choices, tileCapacity: number, tile: number) {
  const found = choices.experts.map(() => -1);
  for (let i = 0; i < (words[0] ?? 0); i++) {
    const [first = 0, packed = 0] = words.subarray(4 + 2 * i, 6 + 2 * i);
    const count = packed >>> 16;
    if (i >= tileCapacity || count === 0 || count > tile) return false;
    for (const choice of words.subarray(4 + 2 * tileCapacity + first).subarray(0, count)) {
      if (found[choice] !== -1) return false;
      found[choice] = packed & 0xffff;
    }
  }
  return found.every((expert, choice) => expert === choices.experts[choice]);
}

function orderCase(name: string, counts: readonly number[], tile: number): VerifyCase {
  return {
    kernel: "expert_order",
    variant: `tiles of ${tile}`,
    name,
    bound: 0,
    run(bench) {
      const choices = mixedChoices(counts, new Random(tile));
      const { sorted } = sort(bench, choices, counts.length, tile);
      const { order, rowCapacity } = sorted;
      const words = new Uint32Array(bench.read(order, rowCapacity * orderWords(slots)).buffer);
      return isSorted(words, choices, tileCapacityOf(sorted), tile) ? 0 : Infinity;
    },
  };
}

const orderCases: readonly VerifyCase[] = [
  orderCase("experts with none, one, a few and many rows", crowds, 16),
  orderCase("experts with none, one, a few and many rows", crowds, 64),
  orderCase("one expert takes all", [0, 0, 300], 32),
  orderCase("512 experts, 900 choices", [...Array.from({ length: 511 }, () => 1), 389], 32),
  orderCase(
    "512 experts, three choices",
    Array.from({ length: 512 }, (_, i) => +(i % 171 === 3)),
    16,
  ),
];

function sumCase(accumulate: boolean): VerifyCase {
  const width = 76;
  return {
    kernel: "expert_sum",
    variant: accumulate ? "added" : "alone",
    name: `3 experts, 40 of 42 rows, width ${width}`,
    bound: sumBound,
    run(bench) {
      const random = new Random(width);
      const choices = mixedChoices(crowds, random);
      const rowCapacity = choices.rows + spareRows;
      const x = random.floats(rowCapacity * slots * width);
      const before = random.floats(rowCapacity * width);
      const y = bench.upload(before);
      const step = uploadStep(bench, plainRows(choices.rows), { capacity: rowCapacity });
      const sum = { x: bench.upload(x), y, accumulate, slots, width, step, rowCapacity };
      const slice = uploadChoices(bench, choices, rowCapacity);
      bench.run((context) => expertSum(context, { ...sum, choices: slice }));
      const expected = Float64Array.from({ length: rowCapacity * width }, (_unused, i) => {
        const row = Math.floor(i / width);
        let total = accumulate || row >= choices.rows ? (before[i] ?? 0) : 0;
        for (let slot = 0; slot < slots && row < choices.rows; slot++) {
          const choice = row * slots + slot;
          total += (choices.weights[choice] ?? 0) * (x[choice * width + (i % width)] ?? 0);
        }
        return total;
      });
      return relativeError(bench.read(y), expected);
    },
  };
}

/** What a product is: plain, as the second half has it, or a gate with what it opens. */
interface ProductInput {
  readonly kind: "apart" | "merged" | "alone" | "down";
  readonly gate?: GateFunction;
  readonly biased?: true;
  readonly tile: number;
  readonly results: number;
}

interface Rows {
  readonly x: BufferSlice;
  /** What `x` stands for. */
  readonly read: Float32Array;
}

/** What a product is made from, and what should come of it. */
function makeProduct(
  bench: Workbench,
  dtype: DType,
  input: ProductInput,
  prepare: (values: Float32Array, width: number) => Rows,
) {
  const { kind, gate = "silu", biased, tile, results } = input;
  const { blockValues } = blockFormats[dtype];
  const width = Math.ceil(144 / Math.max(blockValues, 16)) * Math.max(blockValues, 16);
  const random = new Random(results + width);
  const choices = mixedChoices(crowds, random);
  const experts = crowds.length;
  const { sorted, rows } = sort(bench, choices, experts, tile);
  const { rowCapacity } = rows;
  const apart = kind === "down";
  const inputs = rowCapacity * (apart ? slots : 1);
  // Halves hold these exactly.
  const values = random.floats(inputs * width, 0.5).map((value) => Math.round(value * 256) / 256);
  const { x, read } = prepare(values, width);
  const isGated = kind === "apart" || kind === "merged";
  const expertRows = kind === "merged" ? 2 * results : results;
  const matrixOf = (name: string) => {
    const blocks = randomBlocks(dtype, (experts * expertRows * width) / blockValues, random);
    const weights = dequantize(dtype, blocks);
    const bias = random.floats(experts * expertRows, biased ? 2 : 0);
    return {
      matrix: bench.matrix(name, dtype, experts * expertRows, width, blocks),
      bias: biased && bench.vector(`${name} bias`, bias),
      product(row: number, own: Float32Array) {
        return dot(weights.subarray(row * width, (row + 1) * width), own) + (bias[row] ?? 0);
      },
    };
  };
  const w = matrixOf("w");
  const up = kind === "apart" ? matrixOf("up") : undefined;
  const upRow = kind === "merged" ? results : 0;
  const expected = choices.experts.flatMap((expert, choice) => {
    const from = apart ? choice : Math.floor(choice / slots);
    const own = read.subarray(from * width, (from + 1) * width);
    const products = (of: typeof w, first: number) =>
      Array.from({ length: results }, (_unused, i) =>
        of.product(expert * expertRows + first + i, own),
      );
    const gates = products(w, 0);
    return isGated ? Array.from(gluReference(gates, products(up ?? w, upRow), gate)) : gates;
  });
  const y = bench.floats(rowCapacity * slots * results);
  return { sorted, step: rows.step, x, apart, w, up, gate, isGated, y, expected };
}

interface TiledInput extends ProductInput {
  readonly tuning: ExpertTuning;
}

/** Products on matrix units, with rows of halves. */
function runTiles(
  bench: Workbench,
  dtype: DType,
  input: ProductInput,
  record: (context: KernelContext, product: ExpertProduct) => void,
): number {
  const made = makeProduct(bench, dtype, input, (values, width) => {
    const [x, rows] = [bench.upload(values), values.length / width];
    const step = uploadStep(bench, plainRows(rows), { capacity: rows });
    bench.run((context) => halve(context, { x, y: x, width, step, rowCapacity: rows }));
    return { x, read: values };
  });
  const { sorted, x, apart, w, up, gate, isGated, y, expected } = made;
  const gated = { gate, up: up?.matrix, bias: up?.bias };
  const product = { w: w.matrix, bias: w.bias, ...(isGated && { gated }), x, apart, y };
  bench.run((context) => record(context, { ...product, ...sorted }));
  return relativeError(bench.read(y, expected.length), expected);
}

function recordTiles(context: KernelContext, product: ExpertProduct, tuning: ExpertTuning): void {
  const units = matrixUnitsOf(context.capabilities);
  invariant(units !== undefined, "a case that needs matrix units runs without");
  expertMatmul(context, units, product, tuning);
}

/** Weights are rounded to halves; scales and offsets before them. A gate multiplies errors. */
function tilesBound({ kind }: ProductInput): number {
  return kind === "down" || kind === "alone" ? 4e-3 : 2e-2;
}

function describe({ kind, gate, biased, results }: ProductInput): string {
  const details = [kind, ...(gate ? [gate] : []), ...(biased ? ["biased"] : [])];
  return `${slots} of ${crowds.length} experts, ${results} results, ${details.join(", ")}`;
}

function tilesCase(dtype: DType, input: TiledInput): VerifyCase {
  const { kind, tile, tuning } = input;
  const { tileRows, partRows, partColumns, slice } = tuning;
  const layout = `${tileRows} × ${tile} in ${partRows} × ${partColumns} by ${slice}`;
  return {
    kernel: "expert_matmul",
    variant: `${dtype} ${kind}`,
    name: `${describe(input)}, ${layout}`,
    bound: tilesBound(input),
    needs: "matrix units",
    run: (bench) =>
      runTiles(bench, dtype, input, (context, product) => recordTiles(context, product, tuning)),
  };
}

interface DirectInput extends ProductInput {
  readonly tuning: DirectExpertTuning;
}

function directCase(dtype: DType, input: DirectInput): VerifyCase {
  const { kind, tile, tuning } = input;
  const layout = `${tuning.subgroups} × ${tuning.rowTiles} × 16 rows, tiles of ${tile}`;
  return {
    kernel: "expert_direct",
    variant: `${dtype} ${kind}`,
    name: `${describe(input)}, ${layout}`,
    bound: tilesBound(input),
    needs: "known fragments",
    run: (bench) =>
      runTiles(bench, dtype, input, (context, product) => expertDirect(context, product, tuning)),
  };
}

const direct = { rowTiles: 1, subgroups: 2 };

/** Of every type. */
const directInputs: readonly DirectInput[] = [
  { kind: "apart", tile: 16, tuning: direct, results: 37 },
  { kind: "down", tile: 32, tuning: { ...direct, rowTiles: 2 }, results: 45 },
];

const moreDirectInputs: readonly DirectInput[] = [
  { kind: "merged", tile: 32, tuning: direct, results: 40, gate: "gelu", biased: true },
  { kind: "apart", tile: 64, tuning: { rowTiles: 2, subgroups: 4 }, results: 140, biased: true },
  { kind: "alone", tile: 16, tuning: { ...direct, subgroups: 1 }, results: 33, biased: true },
];

const small = { tileRows: 32, partRows: 16, partColumns: 16, slice: 64 };

/** Of every type. */
const tiledInputs: readonly TiledInput[] = [
  { kind: "apart", tile: 16, tuning: small, results: 37 },
  { kind: "down", tile: 32, tuning: { ...small, partColumns: 32 }, results: 45 },
];

const moreTiledInputs: readonly TiledInput[] = [
  { kind: "merged", tile: 32, tuning: { ...small, tileRows: 16 }, results: 40, gate: "gelu" },
  { kind: "merged", tile: 16, tuning: small, results: 32, gate: "clamped", biased: true },
  { kind: "apart", tile: 16, tuning: { ...small, partRows: 32 }, results: 36, biased: true },
  { kind: "alone", tile: 32, tuning: small, results: 33, biased: true },
  { kind: "down", tile: 64, tuning: { ...small, partRows: 32, partColumns: 32 }, results: 70 },
  { kind: "down", tile: 16, tuning: { ...small, slice: 128 }, results: 32, biased: true },
];

interface SharedInput extends ProductInput {
  readonly activation: ExpertActivation;
  readonly quantizes?: true;
}

/** Without matrix units: a few rows share the weights of an expert. */
function runShared(bench: Workbench, dtype: DType, input: SharedInput, force: Force): number {
  const { activation, quantizes, results } = input;
  const prepare = (values: Float32Array, width: number) =>
    prepareRows(bench, values, width, activation);
  const made = makeProduct(bench, dtype, input, prepare);
  const { sorted, step, x, apart, w, up, gate: gateFunction, isGated, y, expected } = made;
  const matrices = { gate: w.matrix, gateBias: w.bias, up: up?.matrix, upBias: up?.bias };
  const product = { ...matrices, gateFunction, alone: !isGated, x, apart, activation, y, step };
  const { order: choices, ...rest } = sorted;
  bench.run((context) =>
    expertGateUp(
      { ...context, force },
      { ...product, ...rest, choices, ...(quantizes && { yActivation: "int8" }) },
    ),
  );
  const capacity = sorted.rowCapacity * slots;
  const actual = quantizes
    ? readCodes(bench, y, capacity, expected.length / results, results)
    : bench.read(y, expected.length);
  return relativeError(actual, expected);
}

const sharedInputs: readonly Omit<SharedInput, "activation">[] = [
  { kind: "apart", tile: 4, results: 13 },
  { kind: "down", tile: 4, results: 14 },
];

/** Codes are of blocks of 32 results. */
const quantizing = { tile: 4, results: 64, activation: "int8", quantizes: true } as const;
const moreSharedInputs: readonly SharedInput[] = [
  { ...quantizing, kind: "apart", biased: true },
  { ...quantizing, kind: "merged", gate: "gelu" },
];

function sharedCases(dtype: DType, input: SharedInput): VerifyCase[] {
  const { activation, tile, quantizes } = input;
  return reductions.map(({ variant, force, ...rest }) => ({
    kernel: "expert_gate_up",
    variant: `${dtype} ${activation} ${variant} sorted`,
    name: `${describe(input)}, ${tile} share weights${quantizes ? ", quantized" : ""}`,
    // Half a step of 127 of the largest value in a block is the rounding itself.
    bound: quantizes ? 0.1 : sumBound,
    ...rest,
    run: (bench) => runShared(bench, dtype, input, force),
  }));
}

export const sortedExpertCases: readonly VerifyCase[] = [
  ...orderCases,
  sumCase(true),
  sumCase(false),
  ...dtypes.flatMap((dtype, i) =>
    activationsOf(dtype).flatMap((activation, j) => {
      const input = sharedInputs[(i + j) % sharedInputs.length];
      return input === undefined ? [] : sharedCases(dtype, { ...input, activation });
    }),
  ),
  ...moreSharedInputs.flatMap((input) => sharedCases("Q4_K", input)),
  ...dtypes
    .filter((dtype) => dtype !== "F32")
    .flatMap((dtype) => [
      ...tiledInputs.map((input) => tilesCase(dtype, input)),
      ...(["F16", "Q4_K", "Q5_K", "Q8_0", "MXFP4"].includes(dtype)
        ? [
            ...moreTiledInputs.map((input) => tilesCase(dtype, input)),
            ...moreDirectInputs.map((input) => directCase(dtype, input)),
          ]
        : []),
      ...directInputs.map((input) => directCase(dtype, input)),
    ]),
];
