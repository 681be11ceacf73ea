/** What a device is asked about the fragments of its matrix units, and which answers are known. */
import { describe, expect, test } from "bun:test";
import { areQuads } from "../../src/kernels/fragments.ts";

/** What a device answers whose invocation `lane` holds `values` of each operand. */
function answer(values: (operand: number, lane: number) => readonly number[]): Float32Array {
  const found = new Float32Array(3 * 32 * 9);
  for (let operand = 0; operand < 3; operand++) {
    for (let lane = 0; lane < 32; lane++) {
      const held = values(operand, lane);
      found.set([held.length, ...held.slice(0, 8)], (operand * 32 + lane) * 9);
    }
  }
  return found;
}

/** As printed by an H200: rows 16 apart. */
function quads(operand: number, lane: number): number[] {
  const first = 16 * Math.floor(lane / 4) + 2 * (lane % 4);
  const quad = [first, first + 1, first + 8, first + 9];
  return operand === 2 ? quad : [...quad, ...quad.map((value) => value + 128)];
}

describe("fragments", () => {
  test("hold quads where four neighbours share a row", () => {
    expect(quads(0, 5)).toEqual([18, 19, 26, 27, 146, 147, 154, 155]);
    expect(areQuads(answer(quads))).toBe(true);
  });

  test("do not where an invocation holds a whole row, as on RDNA3", () => {
    const rows = (_operand: number, lane: number) =>
      Array.from({ length: 16 }, (_, i) => 16 * (lane % 16) + i);
    expect(areQuads(answer(rows))).toBe(false);
  });

  test("do not where one value stands elsewhere", () => {
    const swapped = (operand: number, lane: number) =>
      lane === 31 && operand === 1 ? quads(operand, lane).toReversed() : quads(operand, lane);
    expect(areQuads(answer(swapped))).toBe(false);
  });

  test("do not where nothing was written", () => {
    expect(areQuads(new Float32Array(3 * 32 * 9))).toBe(false);
  });
});
