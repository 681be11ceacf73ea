/** The step buffer word for word, and the frequencies of the rotary embedding. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/errors.ts";
import { rotaryTurns } from "../../src/kernels/rope-cache.ts";
import { stepBytes, writeBlockTable, writeStep } from "../../src/kernels/step.ts";

const shape = { rowCapacity: 3, sequenceCapacity: 2, tableStride: 4 };
const row = (token: number, position: number, sequence: number) => ({ token, position, sequence });

describe("the step buffer", () => {
  test("holds header, rows by column, output rows, and a table a sequence", () => {
    const words = new Uint32Array(stepBytes(shape) / 4);
    writeStep(words, shape, [row(7, 40, 1), row(8, 41, 1)], [1]);
    writeBlockTable(words, shape, 0, [9]);
    writeBlockTable(words, shape, 1, [5, 6, 1]);
    writeBlockTable(words, shape, 1, [4, 3], 2);
    expect([...words]).toEqual(
      [
        // Rows, outputs, row capacity, table stride, runs.
        [2, 1, 3, 4, 1],
        // Tokens, positions, sequences, output rows, first rows of runs.
        [7, 8, 0],
        [40, 41, 0],
        [1, 1, 0],
        [1, 0, 0],
        [0, 0, 0],
        [9, 0, 0, 0],
        [5, 6, 4, 3],
      ].flat(),
    );
  });

  test("says where each run of rows of one sequence begins", () => {
    const words = new Uint32Array(stepBytes(shape) / 4);
    writeStep(words, shape, [row(7, 40, 1), row(8, 41, 1), row(9, 3, 0)], []);
    expect(words[4]).toBe(2);
    expect([...words.subarray(17, 20)]).toEqual([0, 2, 0]);
  });

  test("is rewritten in place: rows of the step before stay behind the count", () => {
    const words = new Uint32Array(stepBytes(shape) / 4);
    writeStep(words, shape, [row(1, 1, 0), row(2, 2, 0), row(3, 3, 0)], [0, 1, 2]);
    writeStep(words, shape, [row(4, 4, 1)], []);
    expect([...words.subarray(0, 8)]).toEqual([1, 0, 3, 4, 1, 4, 2, 3]);
  });

  test("takes no more rows, outputs and blocks than it has room for", () => {
    const words = new Uint32Array(stepBytes(shape) / 4);
    const four = Array.from({ length: 4 }, () => row(0, 0, 0));
    expect(() => writeStep(words, shape, four, [])).toThrow(new InvariantError("4 rows in a step"));
    expect(() => writeStep(words, shape, [], [0, 0, 0, 0])).toThrow(InvariantError);
    const refusal = new InvariantError("5 blocks in a table of 4");
    expect(() => writeBlockTable(words, shape, 0, [1, 2, 3, 4, 5])).toThrow(refusal);
    expect(() => writeBlockTable(words, shape, 0, [5], 4)).toThrow(refusal);
  });
});

describe("frequencies as turns of 2^64", () => {
  const turns = (radians: number) => new BigUint64Array(rotaryTurns([radians]).buffer)[0] ?? -1n;

  test.each([
    ["no turn", 0, 0n],
    ["a quarter", Math.PI / 2, 1n << 62n],
    ["half a turn", Math.PI, 1n << 63n],
    ["a whole turn is none", 2 * Math.PI, 0n],
    ["a quarter backwards", -Math.PI / 2, 3n << 62n],
    ["five quarters", 2.5 * Math.PI, 1n << 62n],
  ])("%s", (_, radians, expected) => {
    expect(turns(radians)).toBe(expected);
  });

  test.each([1, 1e-3, 1e-6, 0.7])("%d radians stay exact over a million positions", (radians) => {
    const position = 1_000_003;
    const fraction = Number(BigInt.asUintN(64, turns(radians) * BigInt(position))) / 2 ** 64;
    const angle = position * radians;
    expect(Math.cos(fraction * 2 * Math.PI)).toBeCloseTo(Math.cos(angle), 6);
    expect(Math.sin(fraction * 2 * Math.PI)).toBeCloseTo(Math.sin(angle), 6);
  });
});
