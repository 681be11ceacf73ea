/** Activations as halves, and products on matrix units of every type that they take. */
import { invariant } from "../../errors.ts";
import { dequantize } from "../../tensor/dequantize.ts";
import { blockFormats, dtypes, type DType } from "../../tensor/dtype.ts";
import type { GateFunction } from "../gate.ts";
import { halve } from "../halve.ts";
import type { KernelContext } from "../kernel.ts";
import { matmulDirect, type DirectTuning } from "../matmul-direct.ts";
import type { HalvesProduct } from "../matmul-halves.ts";
import { matmulNarrow, type NarrowTuning } from "../matmul-narrow.ts";
import { matmulWide, type WideTuning } from "../matmul-wide.ts";
import { matrixUnitsOf, type MatrixUnits } from "../matrix-units.ts";
import { unitValues } from "../unit-values.ts";
import { reductions, relativeError, type VerifyCase } from "./case.ts";
import { readHalves } from "./halves.ts";
import { Random, randomBlocks } from "./random.ts";
import { gluReference, matmulReference, rmsNormReference } from "./reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";

const epsilon = 1e-5;

/** Half a unit in the last place of 1, relative to uniform values of which a third are zeros. */
const halfBound = 2 ** -11 * Math.sqrt(3) * Math.sqrt(3 / 2) * 1.01;

/** The same, relative to products of uniform values of which two thirds are about zero. */
const gatedBound = 2 ** -11 * Math.sqrt(27) * 1.01;

interface HalveInput {
  readonly variant: string;
  readonly name: string;
  readonly norm?: boolean;
  readonly isInPlace?: boolean;
  readonly tiled?: boolean;
  readonly isGated?: boolean;
  readonly magnitude: number;
  /** So many invocations that a row is held. */
  readonly workgroup?: number;
}

const halveInputs: readonly HalveInput[] = [
  { variant: "plain", name: "values beyond halves", magnitude: 1e9 },
  { variant: "plain", name: "values below halves, in place", magnitude: 1e-12, isInPlace: true },
  { variant: "normed", name: "values of some thousands", magnitude: 5000, norm: true },
  { variant: "tiled", name: "values about 1", magnitude: 1, tiled: true },
  { variant: "gated", name: "values of some thousands", magnitude: 5000, isGated: true },
  { variant: "normed tiled", name: "values about 1", magnitude: 1, norm: true, tiled: true },
  {
    ...{ variant: "normed tiled", name: "held", magnitude: 5000, norm: true, tiled: true },
    workgroup: 128,
  },
  { variant: "plain", name: "held, in place", magnitude: 1e9, isInPlace: true, workgroup: 256 },
  { variant: "gated", name: "held", magnitude: 5000, isGated: true, workgroup: 96 },
];

function halveCase(input: HalveInput): VerifyCase[] {
  const { variant, name, norm, isInPlace, magnitude, tiled = false, isGated, workgroup } = input;
  const width = 1136;
  return reductions.map(({ variant: reduction, force, ...rest }) => ({
    kernel: "halve",
    variant: `${variant} ${reduction}`,
    name: `3 of 4 rows, width ${width}, one of zeros, ${name}`,
    bound: isGated ? gatedBound : halfBound,
    ...rest,
    run(bench) {
      const random = new Random(width);
      const x = random.floats(4 * width, magnitude).fill(0, width, 2 * width);
      const weight = random.floats(width).map((value) => (norm ? Math.sign(value) : 1));
      const up = random.floats(4 * width);
      const source = bench.upload(x);
      const y = isInPlace ? source : bench.floats(4 * width);
      const step = uploadStep(bench, plainRows(3), { capacity: 4 });
      bench.run((context) =>
        halve(
          { ...context, force },
          {
            x: source,
            y,
            width,
            step,
            rowCapacity: 4,
            tiled,
            ...(workgroup === undefined ? {} : { workgroup }),
            ...(isGated && { gated: { up: bench.upload(up), gate: "silu" } }),
            ...(norm && { norm: { weight: bench.vector("norm", weight), epsilon } }),
          },
        ),
      );
      const plain = norm ? rmsNormReference(x, weight, epsilon) : x;
      const expected = isGated ? gluReference(x, up, "silu") : plain;
      return relativeError(
        readHalves(bench, y, { rows: 3, width, capacity: 4, tiled }),
        Array.from(expected).slice(0, 3 * width),
      );
    },
  }));
}

interface ProductInput {
  readonly kernel: string;
  readonly name: string;
  readonly rows: number;
  readonly columns: number;
  readonly capacity: number;
  /** The least values of a row; whole blocks are taken. */
  readonly width: number;
  /** Columns of several groups of invocations, tiles of activations. */
  readonly isDirect?: boolean;
  /** The rows are the step's output rows, and the result is added to nothing and has no bias. */
  readonly isBare?: boolean;
  record(context: KernelContext, units: MatrixUnits, product: HalvesProduct): void;
}

function wide(name: string, input: Pick<ProductInput, "isBare">, tuning: WideTuning) {
  const { tileRows, tileColumns } = tuning;
  const [rows, columns] = [tileRows + 5, tileColumns + 3];
  return {
    kernel: "matmul_wide",
    name: `${rows} rows, ${columns} of ${columns + 4} columns, ${name}`,
    rows,
    columns,
    capacity: columns + 4,
    width: 144,
    record: (context, units, product) => matmulWide(context, units, product, tuning),
    ...input,
  } satisfies ProductInput;
}

function narrow(name: string, input: Pick<ProductInput, "isBare">, tuning: NarrowTuning) {
  const [rows, columns] = [tuning.rows + 5, tuning.columns + 3];
  return {
    kernel: "matmul_narrow",
    name: `${rows} rows, ${columns} of ${2 * tuning.columns} columns, ${name}`,
    rows,
    columns,
    capacity: 2 * tuning.columns,
    width: 144,
    record: (context, units, product) => matmulNarrow(context, units, product, tuning),
    ...input,
  } satisfies ProductInput;
}

function direct(
  name: string,
  input: Pick<ProductInput, "isBare" | "columns" | "capacity">,
  tuning: DirectTuning,
) {
  const rows = 16 * tuning.rowTiles + 5;
  return {
    kernel: "matmul_direct",
    name: `${rows} rows, ${input.columns} of ${input.capacity} columns, ${name}`,
    rows,
    isDirect: true,
    width: 0,
    record: (context, _units, product) => matmulDirect(context, product, tuning),
    ...input,
  } satisfies ProductInput;
}

const small = { tileRows: 32, tileColumns: 16, partRows: 16, partColumns: 16, slice: 64 };

/** Of every type. */
const inputs: readonly ProductInput[] = [
  wide("bias, added", {}, small),
  narrow("bias, added", {}, { rows: 32, columns: 16, subgroups: 4, slice: 64 }),
  direct("bias, added", { columns: 13, capacity: 16 }, { rowTiles: 2, columns: 16, subgroups: 2 }),
];

const moreInputs: readonly ProductInput[] = [
  wide("several subgroups each way", {}, { ...small, tileColumns: 32 }),
  wide("high parts", { isBare: true }, { ...small, tileRows: 64, partRows: 32 }),
  wide("long slices", {}, { ...small, slice: 128 }),
  narrow("one subgroup", { isBare: true }, { rows: 32, columns: 32, subgroups: 1, slice: 64 }),
  direct(
    "few columns",
    { columns: 3, capacity: 4, isBare: true },
    { rowTiles: 1, columns: 8, subgroups: 4 },
  ),
  direct(
    "several tiles each way",
    { columns: 35, capacity: 64 },
    { rowTiles: 2, columns: 32, subgroups: 8 },
  ),
  narrow("low tiles", {}, { rows: 16, columns: 32, subgroups: 2, slice: 128 }),
];

function productCase(dtype: DType, input: ProductInput): VerifyCase {
  const { kernel, name, rows, columns, capacity, isBare = false, isDirect = false } = input;
  const blockValues = Math.max(blockFormats[dtype].blockValues, 16);
  // Five groups of four units: whatever number is taken at once, one of them is the last alone.
  const least = isDirect ? 20 * unitValues(dtype) : input.width;
  const width = Math.ceil(least / blockValues) * blockValues;
  return {
    kernel,
    variant: dtype,
    name: `${name}, width ${width}`,
    // Weights are rounded to halves; scales and offsets before them.
    bound: dtype === "F16" ? 2e-5 : 4e-3,
    needs: isDirect ? "known fragments" : "matrix units",
    run(bench) {
      const random = new Random(rows * 31 + width);
      const data = randomBlocks(dtype, (rows * width) / blockFormats[dtype].blockValues, random);
      // Halves hold these exactly.
      const x = random.floats(capacity * width, 4).map((value) => Math.round(value * 64) / 64);
      const offsets = random.floats(rows);
      const before = random.floats(capacity * rows);
      const y = isBare ? bench.floats(capacity * rows) : bench.upload(before);
      const source = bench.upload(x);
      const outputs = plainRows(columns).map((_, i) => i);
      const step = uploadStep(bench, plainRows(isBare ? capacity : columns), { capacity, outputs });
      bench.run((context) => {
        const units = matrixUnitsOf(context.capabilities);
        invariant(units !== undefined, "a case that needs matrix units runs without");
        const halves = isDirect ? bench.floats(capacity * width) : source;
        const shared = { x: halves, step, rowCapacity: capacity };
        halve(context, { ...shared, x: source, y: halves, width, tiled: isDirect });
        input.record(context, units, {
          ...shared,
          w: bench.matrix("w", dtype, rows, width, data),
          y,
          ...(isBare
            ? { outputs: true }
            : { accumulate: true, bias: bench.vector("bias", offsets) }),
        });
      });
      const expected = matmulReference(dequantize(dtype, data), x, rows, width, columns);
      for (let i = 0; !isBare && i < expected.length; i++) {
        expected[i] = (expected[i] ?? 0) + (offsets[i % rows] ?? 0) + (before[i] ?? 0);
      }
      return relativeError(bench.read(y, columns * rows), expected);
    },
  };
}

interface GatedInput extends DirectTuning {
  readonly rows: number;
  readonly count: number;
  readonly capacity: number;
  readonly gate: GateFunction;
  /** Of x. */
  readonly magnitude: number;
}

const gatedInputs: readonly GatedInput[] = [
  {
    ...{ rows: 24, count: 3, capacity: 4, gate: "silu", magnitude: 0.25 },
    ...{ rowTiles: 1, columns: 8, subgroups: 4 },
  },
  {
    ...{ rows: 40, count: 5, capacity: 8, gate: "gelu", magnitude: 0.25 },
    ...{ rowTiles: 2, columns: 8, subgroups: 2 },
  },
  {
    ...{ rows: 24, count: 17, capacity: 32, gate: "clamped", magnitude: 0.25 },
    ...{ rowTiles: 1, columns: 16, subgroups: 4 },
  },
  {
    ...{ rows: 72, count: 33, capacity: 64, gate: "silu", magnitude: 0.25 },
    ...{ rowTiles: 2, columns: 32, subgroups: 8 },
  },
];

/** Results of which some exceed the largest that can be written. */
const largeInput: GatedInput = {
  ...{ rows: 24, count: 7, capacity: 7, gate: "silu", magnitude: 128 },
  ...{ rowTiles: 1, columns: 8, subgroups: 2 },
};

/** The largest half, with a step of 16. */
const gatedMax = 16 * 65504;

function gatedCase(dtype: DType, input: GatedInput): VerifyCase {
  const { rows, count, capacity, gate, magnitude, ...tuning } = input;
  const blockValues = Math.max(blockFormats[dtype].blockValues, 16);
  const width = Math.ceil((20 * unitValues(dtype)) / blockValues) * blockValues;
  return {
    kernel: "matmul_direct",
    variant: `${dtype} gated`,
    name: [
      `${rows} rows, ${count} of ${capacity} columns`,
      `${gate}, x of ${magnitude}, width ${width}`,
    ].join(", "),
    // Of products of weights and activations in halves, of which a few are much larger than others.
    bound: 0.02,
    needs: "known fragments",
    run(bench) {
      const random = new Random(rows * 31 + width);
      const blocks = (rows * width) / blockFormats[dtype].blockValues;
      const data = [0, 1].map(() => randomBlocks(dtype, blocks, random));
      // Halves hold these exactly.
      const x = random
        .floats(capacity * width, 256)
        .map((value) => (Math.round(value) / 256) * magnitude);
      const y = bench.floats(capacity * rows);
      const step = uploadStep(bench, plainRows(count), { capacity });
      bench.run((context) => {
        const [w, up] = data.map((each, i) => bench.matrix(`w${i}`, dtype, rows, width, each));
        invariant(w !== undefined && up !== undefined, "two matrices");
        const tiles = bench.floats(capacity * width);
        const shared = { step, rowCapacity: capacity };
        halve(context, { ...shared, x: bench.upload(x), y: tiles, width, tiled: true });
        matmulDirect(context, { ...shared, w, gated: { up, gate }, x: tiles, y }, tuning);
      });
      const [gates = [], ups = []] = data.map((each) =>
        matmulReference(dequantize(dtype, each), x, rows, width, count),
      );
      const expected = gluReference(gates, ups, gate).map((value) =>
        Math.min(Math.max(value, -gatedMax), gatedMax),
      );
      const shape = { rows: count, width: rows, capacity, tiled: true };
      return relativeError(readHalves(bench, y, shape), expected);
    },
  };
}

export const halvesCases: readonly VerifyCase[] = [
  ...halveInputs.flatMap(halveCase),
  ...dtypes
    .filter((dtype) => dtype !== "F32")
    .flatMap((dtype) => [
      ...inputs.map((input) => productCase(dtype, input)),
      ...(["F16", "Q4_K", "Q6_K", "Q8_0"].includes(dtype)
        ? [
            ...moreInputs.map((input) => productCase(dtype, input)),
            ...gatedInputs.map((input) => gatedCase(dtype, input)),
            ...(dtype === "F16" ? [gatedCase(dtype, largeInput)] : []),
          ]
        : []),
    ]),
];
