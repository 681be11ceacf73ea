/** Guesses from what a text repeats, in literal numbers. */
import { describe, expect, test } from "bun:test";
import { NgramDrafter } from "../../src/engine/ngram-drafter.ts";
import { RandomTape } from "../../src/engine/random-tape.ts";

const guess = (tokens: readonly number[], count = 4) => new NgramDrafter().guess(tokens, count);

describe("a guess", () => {
  test("is what followed the last three tokens before", () => {
    expect(guess([1, 2, 3, 4, 5, 6, 7, 1, 2, 3])).toEqual({ tokens: [4, 5, 6, 7], evidence: 0 });
    expect(guess([1, 2, 3, 4, 5, 6, 7, 1, 2, 3], 2)?.tokens).toEqual([4, 5]);
  });

  test("is not made without three tokens that came before", () => {
    expect(guess([1, 2, 3, 4, 9, 2, 3])).toBeUndefined();
    expect(guess([1, 2])).toBeUndefined();
    expect(guess([])).toBeUndefined();
  });

  test("prefers the longest match, and of equals the latest", () => {
    expect(guess([1, 2, 3, 4, 50, 9, 2, 3, 4, 60, 1, 2, 3, 4], 1)?.tokens).toEqual([50]);
    expect(guess([9, 2, 3, 4, 50, 8, 2, 3, 4, 60, 7, 2, 3, 4], 1)?.tokens).toEqual([60]);
  });

  test("goes on with a period beyond the end of the text", () => {
    expect(guess([5, 6, 5, 6, 5], 5)?.tokens).toEqual([6, 5, 6, 5, 6]);
    expect(guess([7, 7, 7, 7], 3)?.tokens).toEqual([7, 7, 7]);
  });

  test("has the more evidence, the longer the match", () => {
    const evidence = (length: number) => {
      const part = Array.from({ length }, (_unused, i) => 100 + i);
      return guess([...part, 1, 2, ...part])?.evidence;
    };
    expect([3, 4, 5, 8, 9, 16, 17, 40].map(evidence)).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
  });

  test("comes from a text that grew since the last one", () => {
    const drafter = new NgramDrafter();
    const tokens = [1, 2, 3, 4, 5];
    expect(drafter.guess(tokens, 2)).toBeUndefined();
    tokens.push(1, 2, 3);
    expect(drafter.guess(tokens, 2)?.tokens).toEqual([4, 5]);
    tokens.push(6, 1, 2, 3);
    expect(drafter.guess(tokens, 2)?.tokens).toEqual([6, 1]);
  });
});

test("random numbers that were taken back are drawn again", () => {
  let count = 0;
  const tape = new RandomTape(() => count++);
  const draw = (length: number) => Array.from({ length }, () => tape.next());
  expect(draw(4)).toEqual([0, 1, 2, 3]);
  tape.takeBack(3);
  expect(draw(2)).toEqual([1, 2]);
  tape.takeBack(1);
  expect(draw(12)).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
  tape.takeBack(8);
  expect(draw(9)).toEqual([6, 7, 8, 9, 10, 11, 12, 13, 14]);
  expect(() => tape.takeBack(9)).toThrow();
});
