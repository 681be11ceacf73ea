/** Embeddings and tiled products of every type, at sizes around what a workgroup does. */
import { dequantize } from "../../tensor/dequantize.ts";
import { blockFormats, dtypes, type DType } from "../../tensor/dtype.ts";
import { embed } from "../embed.ts";
import { matmulTiles, type TileTuning } from "../matmul.ts";
import { relativeError, sumBound, type VerifyCase } from "./case.ts";
import { Random, randomBlocks } from "./random.ts";
import { matmulReference } from "./reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";

/** Whole blocks, and for plain types a width that is no power of two. */
export function widthOf(dtype: DType, blocks: number): number {
  return blocks * Math.max(blockFormats[dtype].blockValues, 8);
}

function embedCase(dtype: DType): VerifyCase {
  return {
    kernel: "embed",
    variant: dtype,
    name: "5 rows of 67 blocks from 9 tokens, room for 7",
    bound: 1e-6,
    run(bench) {
      const width = widthOf(dtype, 67);
      const count = (9 * width) / blockFormats[dtype].blockValues;
      const blocks = randomBlocks(dtype, count, new Random(1));
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

/** The usual tiles, and lower ones. */
const tileTunings: readonly TileTuning[] = [
  { tileRows: 64, tileColumns: 32, patchRows: 4, patchColumns: 4 },
  { tileRows: 32, tileColumns: 16, patchRows: 2, patchColumns: 2 },
];

function tileCase(dtype: DType, tuning: TileTuning): VerifyCase {
  const [rows, columns, capacity] = [65, 33, 40];
  return {
    kernel: "matmul",
    variant: dtype,
    name: `65 rows of 3 blocks, 33 of 40 columns, bias, switched, added, ${tuning.tileRows} high`,
    bound: sumBound,
    run(bench) {
      const width = widthOf(dtype, 3);
      const random = new Random(rows * 31 + width);
      const data = randomBlocks(dtype, (rows * width) / blockFormats[dtype].blockValues, random);
      const x = random.floats(capacity * width);
      const offsets = random.floats(rows);
      const before = random.floats(capacity * rows);
      const rowSwitch = random.floats(capacity, 6);
      const y = bench.upload(before);
      bench.run((context) =>
        matmulTiles(
          context,
          {
            w: bench.matrix("w", dtype, rows, width, data),
            x: bench.upload(x),
            y,
            bias: bench.vector("bias", offsets),
            rowSwitch: bench.upload(rowSwitch),
            step: uploadStep(bench, plainRows(columns), { capacity }),
            rowCapacity: capacity,
            accumulate: true,
          },
          tuning,
        ),
      );
      const expected = matmulReference(dequantize(dtype, data), x, rows, width, columns);
      for (let i = 0; i < expected.length; i++) {
        const share = 1 / (1 + Math.exp(-(rowSwitch[Math.floor(i / rows)] ?? Number.NaN)));
        expected[i] = ((expected[i] ?? 0) + (offsets[i % rows] ?? 0)) * share + (before[i] ?? 0);
      }
      return relativeError(bench.read(y, columns * rows), expected);
    },
  };
}

export const matmulCases: readonly VerifyCase[] = dtypes.flatMap((dtype) => [
  embedCase(dtype),
  ...tileTunings.map((tuning) => tileCase(dtype, tuning)),
]);
