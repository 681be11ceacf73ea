/** Embeddings and products of every type, at sizes around the edges of what a workgroup does. */
import { dequantize } from "../../tensor/dequantize.ts";
import { blockFormats, dtypes, type DType } from "../../tensor/dtype.ts";
import { embed } from "../embed.ts";
import { matmul, type ProductVariant } from "../matmul.ts";
import { reductions, relativeError, sumBound, type Force, type VerifyCase } from "./case.ts";
import { Random, randomBlocks } from "./random.ts";
import { matmulReference } from "./reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

/** Whole blocks, and for plain types a width that is no power of two. */
function widthOf(dtype: DType, blocks: number): number {
  return blocks * Math.max(blockFormats[dtype].blockValues, 8);
}

function embedCase(dtype: DType): VerifyCase {
  return {
    kernel: "embed",
    variant: dtype,
    name: "5 rows of 3 blocks from 9 tokens, room for 7",
    bound: 1e-6,
    run(bench) {
      const width = widthOf(dtype, 3);
      const blocks = randomBlocks(
        dtype,
        (9 * width) / blockFormats[dtype].blockValues,
        new Random(1),
      );
      const table = bench.matrix("table", dtype, 9, width, blocks);
      const tokens = [8, 0, 3, 3, 7];
      const rows = tokens.map((token, position) => ({ token, position, sequence: 0 }));
      const step = uploadStep(bench, rows, { capacity: 7 });
      const x = bench.floats(7 * width);
      bench.run((context) => embed(context, { table, x, step, rowCapacity: 7, scale: 3 }));
      const values = dequantize(dtype, blocks);
      const expected = tokens.flatMap((token) =>
        Array.from(values.subarray(token * width, (token + 1) * width), (value) => value * 3),
      );
      return relativeError(bench.read(x, tokens.length * width), expected);
    },
  };
}

interface ProductCase {
  readonly dtype: DType;
  readonly rows: number;
  readonly blocks: number;
  readonly columns: number;
  readonly capacity: number;
  readonly variant?: ProductVariant;
  readonly force?: Force;
  readonly bias?: boolean;
  readonly accumulate?: boolean;
}

function runProduct(bench: Workbench, product: ProductCase): number {
  const {
    dtype,
    rows,
    blocks,
    columns,
    capacity,
    variant,
    force,
    bias,
    accumulate = false,
  } = product;
  const width = widthOf(dtype, blocks);
  const random = new Random(rows * 31 + width);
  const data = randomBlocks(dtype, (rows * width) / blockFormats[dtype].blockValues, random);
  const x = random.floats(capacity * width);
  const offsets = random.floats(rows);
  const before = random.floats(capacity * rows);
  const w = bench.matrix("w", dtype, rows, width, data);
  const y = accumulate ? bench.upload(before) : bench.floats(capacity * rows);
  const step = uploadStep(bench, plainRows(columns), { capacity });
  bench.run((context) =>
    matmul(force === undefined ? context : { ...context, force }, {
      w,
      x: bench.upload(x),
      y,
      step,
      rowCapacity: capacity,
      accumulate,
      ...(bias === true ? { bias: bench.vector("bias", offsets) } : {}),
      ...(variant === undefined ? {} : { variant }),
    }),
  );
  const expected = matmulReference(dequantize(dtype, data), x, rows, width, columns);
  for (let i = 0; i < expected.length; i++) {
    const added =
      (bias === true ? (offsets[i % rows] ?? 0) : 0) + (accumulate ? (before[i] ?? 0) : 0);
    expected[i] = (expected[i] ?? 0) + added;
  }
  return relativeError(bench.read(y, columns * rows), expected);
}

const vector = (lanes: number, rows: number, columns: number, subgroups = 1): ProductVariant => ({
  kernel: "vector",
  lanes,
  rows,
  columns,
  subgroups,
});

function vectorCases(dtype: DType): VerifyCase[] {
  return reductions.flatMap(({ variant, force, ...rest }) => {
    const make = (name: string, product: Omit<ProductCase, "dtype" | "force">): VerifyCase => ({
      kernel: "matvec",
      variant: `${dtype} ${variant}`,
      name,
      bound: sumBound,
      ...rest,
      run: (bench) => runProduct(bench, { dtype, force, ...product }),
    });
    return [
      make("1 row of 1 block", { rows: 1, blocks: 1, columns: 1, capacity: 1 }),
      make("65 rows of 3 blocks, 4 lanes, bias", {
        rows: 65,
        blocks: 3,
        columns: 1,
        capacity: 1,
        variant: vector(4, 1, 1),
        bias: true,
      }),
      make("63 rows of 5 blocks, 2 rows each, 3 of 4 columns, added", {
        rows: 63,
        blocks: 5,
        columns: 3,
        capacity: 4,
        variant: vector(8, 2, 4),
        accumulate: true,
      }),
      make("129 rows of 2 blocks, 2 subgroups, 5 of 8 columns in groups of 2", {
        rows: 129,
        blocks: 2,
        columns: 5,
        capacity: 8,
        variant: vector(8, 4, 2, 2),
      }),
    ];
  });
}

function tileCase(dtype: DType): VerifyCase {
  return {
    kernel: "matmul",
    variant: dtype,
    name: "65 rows of 3 blocks, 33 of 40 columns, bias, added",
    bound: sumBound,
    run: (bench) =>
      runProduct(bench, {
        dtype,
        rows: 65,
        blocks: 3,
        columns: 33,
        capacity: 40,
        variant: { kernel: "tile" },
        bias: true,
        accumulate: true,
      }),
  };
}

export const matmulCases: readonly VerifyCase[] = dtypes.flatMap((dtype) => [
  embedCase(dtype),
  ...vectorCases(dtype),
  tileCase(dtype),
]);
