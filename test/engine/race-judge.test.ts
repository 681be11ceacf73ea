/** The rules of a race of layouts, on numbers. */
import { describe, expect, test } from "bun:test";
import { areAlike, winnerOf } from "../../src/engine/race-judge.ts";

describe("the usual layout stays", () => {
  test.each([
    [
      "where nobody is faster",
      [
        [1, 1, 2],
        [1, 1, 2],
      ],
    ],
    [
      "where a challenger gains 2 %",
      [
        [1, 0.98],
        [1, 0.98],
      ],
    ],
    [
      "where one round alone shows a gain",
      [
        [1, 0.5],
        [1, 0.98],
      ],
    ],
    [
      "where the other round alone does",
      [
        [1, 0.98],
        [1, 0.5],
      ],
    ],
    [
      "where different challengers win the rounds",
      [
        [1, 0.5, 1],
        [1, 1, 0.5],
      ],
    ],
    ["after one round", [[1, 0.5]]],
    ["where a challenger was not measured again", [[1, 0.5], [1]]],
    ["where it runs alone", [[1], [1]]],
    ["without any round", []],
  ])("%s", (_, rounds: readonly (readonly number[])[]) => {
    expect(winnerOf(rounds)).toBe(0);
  });
});

describe("a challenger wins", () => {
  test.each([
    [
      "that gains 3 % in both rounds",
      [
        [1, 0.97],
        [2, 1.94],
      ],
      1,
    ],
    [
      "that is the fastest of several over both rounds",
      [
        [1, 0.9, 0.8, 0.7],
        [1, 0.9, 0.8, 0.95],
      ],
      2,
    ],
    [
      "though another one was faster in a round that did not last",
      [
        [1, 0.9, 0.1],
        [1, 0.9, 1],
      ],
      1,
    ],
  ])("%s", (_, rounds: readonly (readonly number[])[], winner) => {
    expect(winnerOf(rounds)).toBe(winner);
  });
});

describe("results", () => {
  const expected = Float32Array.of(1, -1, 1, -1);

  test.each([
    ["that are equal are alike", [1, -1, 1, -1], true],
    ["that differ by 4 % of their size are alike", [1.04, -1, 1, -1], true],
    ["that differ by 6 % somewhere are not", [1, -1, 1, -1.06], false],
    ["of another sign are not", [1, 1, 1, -1], false],
    ["that are no number are not", [1, -1, Number.NaN, -1], false],
    ["of which some are missing are not", [1, -1, 1], false],
  ])("%s", (_, actual: readonly number[], alike) => {
    expect(areAlike(expected, Float32Array.from(actual))).toBe(alike);
  });

  test("of nothing but zeros are alike", () => {
    expect(areAlike(new Float32Array(3), new Float32Array(3))).toBe(true);
  });
});
