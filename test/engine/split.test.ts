/** Which layers go to which device, on numbers alone. */
import { describe, expect, test } from "bun:test";
import { deviceInVain, splitLayers, type SplitProblem } from "../../src/engine/split.ts";

interface Wish extends Partial<SplitProblem> {
  /** Bytes that each device needs beside its layers; 0 by default. */
  readonly fixed?: readonly number[];
}

/** Layers of 100 bytes and of one for each token, which may be cut anywhere. */
function problem(layerCount: number, free: readonly number[], wish: Wish = {}): SplitProblem {
  const { fixed = [], ...more } = wish;
  const layer = { weightBytes: 100, stateBytes: 0, cacheBytesPerToken: 1 };
  return {
    layers: Array.from({ length: layerCount }, () => layer),
    cuts: Array.from({ length: layerCount - 1 }, (_unused, i) => i + 1),
    devices: free.map((freeBytes, i) => ({ freeBytes, fixedBytes: fixed[i] ?? 0 })),
    ...more,
  };
}

/** The ends of the ranges. */
function ends(given: SplitProblem, tokens: { least?: number; most?: number } = {}): number[] {
  const ranges = splitLayers(given, { least: 0, most: 0, step: 32, ...tokens });
  expect(ranges[0]?.first).toBe(0);
  ranges.slice(1).forEach(({ first }, i) => expect(first).toBe(ranges[i]?.end ?? -1));
  return ranges.map(({ end }) => end);
}

describe("layers", () => {
  test.each([
    ["equal devices get as many each", problem(8, [1000, 1000]), [4, 8]],
    ["three of them, too", problem(9, [1000, 1000, 1000]), [3, 6, 9]],
    ["who has thrice as much free gets thrice as many", problem(8, [3000, 1000]), [6, 8]],
    ["also if it comes last", problem(8, [1000, 3000]), [2, 8]],
    ["what a device needs beside counts", problem(8, [1000, 1000], { fixed: [0, 400] }), [6, 8]],
    ["every device gets one at least", problem(3, [9000, 200, 200]), [1, 2, 3]],
    ["they are cut where they can be", problem(8, [1000, 1000], { cuts: [1, 2] }), [2, 8]],
  ])("%s", (_unused, given, expected) => {
    expect(ends(given)).toEqual(expected);
  });

  test("that weigh more count for more", () => {
    const light = { weightBytes: 100, stateBytes: 0, cacheBytesPerToken: 0 };
    const layers = [{ ...light, weightBytes: 600 }, ...Array.from({ length: 6 }, () => light)];
    expect(ends(problem(7, [1000, 1000], { layers }))).toEqual([1, 7]);
  });

  test("make room for the tokens that are wished for, or for as many as fit", () => {
    // Those of the first half keep nothing.
    const layers = Array.from({ length: 8 }, (_unused, i) => ({
      weightBytes: 100,
      stateBytes: 0,
      cacheBytesPerToken: i < 4 ? 0 : 1,
    }));
    const given = problem(8, [1000, 1000], { layers });
    expect(ends(given, { most: 0 })).toEqual([4, 8]);
    // 400 + 4 · 200 are too much, and 300 + 3 · 200 are not.
    expect(ends(given, { most: 200 })).toEqual([5, 8]);
    expect(ends(given, { least: 32, most: 3200 })).toEqual([5, 8]);
  });

  test("are split evenly where nothing fits", () => {
    expect(ends(problem(8, [100, 100]), { least: 32, most: 320 })).toEqual([4, 8]);
  });
});

describe("a device in vain", () => {
  const inVain = (free: readonly number[], tokens: number, wish?: Wish) =>
    deviceInVain(problem(4, free, wish), tokens);

  test("is one that has no room for the least that it could get", () => {
    const fixed = [50, 50];
    expect(inVain([1000, 120], 0, { fixed })).toEqual({ index: 1, leastBytes: 150 });
    expect(inVain([100, 1000], 0, { fixed })).toEqual({ index: 0, leastBytes: 150 });
    expect(inVain([1000, 149, 1000], 50)).toEqual({ index: 1, leastBytes: 150 });
    expect(inVain([1000, 250], 0, { cuts: [1] })).toEqual({ index: 1, leastBytes: 300 });
  });

  test("is none that has just enough", () => {
    expect(inVain([150, 150], 0, { fixed: [50, 50] })).toBeUndefined();
    expect(inVain([150, 150], 50)).toBeUndefined();
  });
});
