/**
 * No text is slow to tokenize, whatever it consists of. The bounds leave much room for slow and
 * busy machines: an algorithm that compares each symbol with each other would take minutes.
 */
import { describe, expect, test } from "bun:test";
import type { Tokenizer } from "../../src/tokenizer/tokenizer.ts";
import {
  byteTokens,
  hasShared,
  kind,
  quietTokenizer,
  texts,
  tiny,
  tinyBpe,
  tinySpm,
  vectorMetadata,
  type Entry,
} from "./vocabularies.ts";

const length = 200_000;
const limitMs = 3000;

const letters = Array.from("abcdefghijklmnopqrstuvwxyz");
const pairs = letters.flatMap((left) => letters.map((right) => `${left} ${right}`));
/** Doubles: two, four, eight and so on up to 64 of each of some characters. */
const doubles = ["a", "=", "▁"].flatMap((character) =>
  [1, 2, 4, 8, 16, 32].map((n) => `${character.repeat(n)} ${character.repeat(n)}`),
);
const merges = [...pairs, ...doubles];
const joined = merges.map((merge) => merge.replace(" ", ""));
const characters = [...letters, "=", "▁", "<", ">"];

const tokenizers: readonly (readonly [string, () => Tokenizer])[] = [
  ["byte-level BPE", () => quietTokenizer(tinyBpe(merges.filter((m) => !m.includes("▁"))))],
  ["SentencePiece", () => quietTokenizer(tinySpm([...scored(characters), ...scored(joined)]))],
  [
    "plain BPE",
    () => {
      const entries = [...characters, ...joined, ">▁<", ...byteTokens];
      return quietTokenizer(tiny("gemma4", entries, { "tokenizer.ggml.merges": texts(merges) }));
    },
  ],
];

function scored(spellings: readonly string[]): Entry[] {
  return spellings.map((spelling, index) => [spelling, kind.normal, -index]);
}

/** The same on every run. */
function randomLetters(count: number): string {
  let state = 1;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return letters[(state >>> 16) % letters.length];
  }).join("");
}

const inputs: readonly (readonly [string, string])[] = [
  ["random letters without a space", randomLetters(length)],
  ["one letter", "a".repeat(length)],
  ["one symbol", "=".repeat(length)],
  ["spaces", " ".repeat(length)],
  ["newlines", "\n".repeat(length)],
  ["digits", "1".repeat(length)],
  ["an emoji", "😀".repeat(length / 2)],
  ["Chinese", "世界".repeat(length / 2)],
  ["angle brackets", "> <".repeat(length / 3)],
];

function expectQuick(tokenizer: Tokenizer, input: string): void {
  const start = performance.now();
  const ids = tokenizer.encode(input);
  expect(performance.now() - start).toBeLessThan(limitMs);
  expect(tokenizer.decode(ids)).toBe(input);
}

describe.each(tokenizers)("200,000 characters with %s", (_name, create) => {
  const tokenizer = create();
  test.each(inputs)("%s", (_input, input) => expectQuick(tokenizer, input));
});

describe.skipIf(!hasShared)("real vocabularies (skipped where ../shared does not exist)", () => {
  test.each(["qwen2", "llama-spm", "gemma-4"])("%s", (name) => {
    const tokenizer = quietTokenizer(vectorMetadata(name));
    for (const [, input] of inputs.slice(0, 2)) expectQuick(tokenizer, input);
  });

  test("a vocabulary of 256,000 tokens is ready in no time", () => {
    const metadata = vectorMetadata("command-r");
    const start = performance.now();
    quietTokenizer(metadata).encode("ready");
    expect(performance.now() - start).toBeLessThan(limitMs);
  });
});

test("thousands of user-defined tokens and a text full of their beginnings", () => {
  const entries: Entry[] = Array.from({ length: 6000 }, (_, i) => [`<unused${i}>`, kind.user]);
  const spaces: Entry[] = Array.from({ length: 30 }, (_, i) => [" ".repeat(i + 2), kind.user]);
  const tokenizer = quietTokenizer(tinyBpe([], [...entries, ...spaces]));
  expectQuick(tokenizer, "<unused".repeat(length / 7));
  expectQuick(tokenizer, "<unused7>x".repeat(length / 10));
  expectQuick(tokenizer, " ".repeat(length));
});
