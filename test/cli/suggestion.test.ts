/** "Did you mean": what is near enough to be meant. */
import { describe, expect, test } from "bun:test";
import { editDistance, suggestion } from "../../src/cli/options.ts";

describe("the edit distance", () => {
  test.each([
    ["", "", 0],
    ["run", "run", 0],
    ["", "run", 3],
    ["run", "", 3],
    ["ru", "run", 1],
    ["runn", "run", 1],
    ["ran", "run", 1],
    ["rnu", "run", 1],
    ["urn", "run", 1],
    ["nur", "run", 2],
    ["prmopt", "prompt", 1],
    ["kitten", "sitting", 3],
    ["abcd", "badc", 2],
  ])("from %p to %p is %i", (a, b, expected) => {
    expect(editDistance(a, b)).toBe(expected);
    expect(editDistance(b, a)).toBe(expected);
  });
});

describe("a suggestion", () => {
  const commands = ["run", "check", "bench", "verify", "tokenize", "perplexity"];

  test.each([
    ["rnu", "run"],
    ["rn", "run"],
    ["chekc", "check"],
    ["Bench", "bench"],
    ["tokenise", "tokenize"],
    ["perplexty", "perplexity"],
    ["verfiy", "verify"],
    ["serve", undefined],
    ["hello", undefined],
    ["", undefined],
  ])("for %p is %p", (wrong, expected) => {
    const text = expected === undefined ? undefined : `did you mean ${expected}?`;
    expect(suggestion(wrong, commands)).toBe(text);
  });

  test("for a single letter is only its other case", () => {
    expect(suggestion("-C", ["-m", "-c"])).toBe("did you mean -c?");
    expect(suggestion("-x", ["-m", "-c"])).toBeUndefined();
  });
});
