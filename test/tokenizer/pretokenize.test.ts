/**
 * Where each family cuts a text. Expected pieces follow the patterns of the models' own files, read
 * as their engines read them, not as JavaScript does.
 */
import { describe, expect, test } from "bun:test";
import { familyOf, Pretokenizer, preTokenizerNames } from "../../src/tokenizer/pretokenize.ts";

function pieces(name: string, text: string): string[] {
  const family = familyOf(name);
  if (family === undefined) throw new Error(`${name} has no row`);
  return new Pretokenizer(family.steps).split(text);
}

test("every name cuts without losing or adding a character", () => {
  const text = "I'LL x'ſ naïve कि 漢字かな 1234567 \n\n a\u00a0b\u0085\u2028\ufeff😀!=/ ٣٤٥٦ \t  ";
  expect(preTokenizerNames.length).toBe(89);
  for (const name of preTokenizerNames) expect(pieces(name, text).join("")).toBe(text);
});

test("a name without a row has no family, not even one that every object has", () => {
  expect(familyOf("no-such-rule")).toBeUndefined();
  expect(familyOf("constructor")).toBeUndefined();
});

describe("white space is Unicode's, not JavaScript's", () => {
  test("U+0085, U+00A0, U+2028 and U+3000 are white space", () => {
    expect(pieces("llama-bpe", "a\u0085\u0085\u00a0\u3000\u2028b")).toEqual([
      "a",
      "\u0085\u0085\u00a0\u3000",
      "\u2028b",
    ]);
    expect(pieces("gpt-2", "a\u0085b\u00a0\u2003c")).toEqual([
      "a",
      "\u0085",
      "b",
      "\u00a0",
      "\u2003",
      "c",
    ]);
  });

  test("U+FEFF, U+200B and U+180E are symbols", () => {
    expect(pieces("gpt-2", "a \ufeff\u200b\u180e b")).toEqual(["a", " \ufeff\u200b\u180e", " b"]);
  });
});

describe("contractions", () => {
  test("GPT-2 knows them in lower case only", () => {
    expect(pieces("gpt-2", "it's IT'S we'll they've I'd")).toEqual([
      "it",
      "'s",
      " IT",
      "'",
      "S",
      " we",
      "'ll",
      " they",
      "'ve",
      " I",
      "'d",
    ]);
  });

  test("Llama 3 ignores case, and the long s is an s", () => {
    expect(pieces("llama-bpe", "IT'S x'ſ WE'LL y'Re")).toEqual([
      "IT",
      "'S",
      " x",
      "'ſ",
      " WE",
      "'LL",
      " y",
      "'Re",
    ]);
  });

  test("no dotted or dotless Turkish i is mistaken for a letter of one", () => {
    expect(pieces("qwen2", "x'İ y'ı z'ſı")).toEqual(["x", "'İ", " y", "'ı", " z", "'ſ", "ı"]);
  });

  test("GPT-4o keeps them with their word", () => {
    expect(pieces("gpt-4o", "IT'S they've don’t")).toEqual(["IT'S", " they've", " don", "’t"]);
  });
});

describe("letters and marks", () => {
  test("Hebrew is letters, Devanagari vowel signs are marks", () => {
    expect(pieces("llama-bpe", "שלום हिन्दी")).toEqual(["שלום", " ह", "िन", "्द", "ी"]);
    expect(pieces("qwen35", "שלום हिन्दी")).toEqual(["שלום", " हिन्दी"]);
    expect(pieces("deepseek-v3", "שלום हिन्दी")).toEqual(["שלום", " हिन्दी"]);
  });

  test("combining accents stay with their letter only where the pattern says so", () => {
    expect(pieces("qwen2", "e\u0301a")).toEqual(["e", "\u0301a"]);
    expect(pieces("qwen35", "e\u0301a")).toEqual(["e\u0301a"]);
    expect(pieces("tekken", "e\u0301a")).toEqual(["e\u0301a"]);
  });

  test("words are cut where lower case turns into upper case, in every script with case", () => {
    expect(pieces("tekken", "camelCaseHTTPServer домДом ÄÖü")).toEqual([
      "camel",
      "Case",
      "HTTPServer",
      " дом",
      "Дом",
      " ÄÖü",
    ]);
    expect(pieces("gpt-4o", "xDD ǅa ʰA")).toEqual(["x", "DD", " ǅa", " ʰ", "A"]);
  });

  test("Kimi K2 cuts Chinese from everything else, by script", () => {
    expect(pieces("kimi-k2", "漢字かなABc 々〇ka")).toEqual(["漢字", "かなABc", " ", "々〇", "ka"]);
  });

  test("DeepSeek cuts Chinese and kana together", () => {
    expect(pieces("deepseek-v3", "漢字かなabc")).toEqual(["漢字かな", "abc"]);
  });

  test("DeepSeek LLM knows only the cased letters that its file lists", () => {
    expect(pieces("deepseek-llm", "Éé \ua78f\u05d1")).toEqual(["Éé", " \ua78f\u05d1"]);
  });

  test("EXAONE MoE joins words across single spaces", () => {
    expect(pieces("exaone-moe", "one two  three कि की 4")).toEqual([
      "one two",
      " ",
      " three कि की",
      " ",
      "4",
    ]);
  });
});

describe("digits", () => {
  test.each([
    ["gpt-2", ["1234567", " x", "12345", "y"]],
    ["llama-bpe", ["123", "456", "7", " x", "123", "45", "y"]],
    ["qwen2", ["1", "2", "3", "4", "5", "6", "7", " x", "1", "2", "3", "4", "5", "y"]],
    ["falcon", ["123", "456", "7", " x", "123", "45", "y"]],
    ["afmoe", ["1", "234", "567", " x", "12", "345", "y"]],
    ["superbpe", ["1", "234", "567", " x", "12", "345", "y"]],
    // A number that runs into a letter is not grouped from the right.
    ["tiny_aya", ["1", "234", "567", " x", "123", "45", "y"]],
  ])("%s", (name, expected) => {
    expect(pieces(name, "1234567 x12345y")).toEqual(expected);
  });

  test("digits of other scripts count, also those beyond the first 65536 characters", () => {
    expect(pieces("llama-bpe", "١٢٣٤ ½")).toEqual(["١٢٣", "٤", " ", "½"]);
    expect(pieces("afmoe", "𝟏𝟐𝟑𝟒")).toEqual(["𝟏", "𝟐𝟑𝟒"]);
    expect(pieces("tiny_aya", "١٢٣٤")).toEqual(["١", "٢٣٤"]);
  });
});

describe("white space and newlines", () => {
  test.each([
    ["gpt-2", [" ", " a", "  \n\n", " b", "\t", "c", "  "]],
    ["llama-bpe", [" ", " a", "  \n\n", " b", "\tc", "  "]],
    ["deepseek-coder", [" ", " a", "  ", "\n", "\n", " b", "\tc", "  "]],
    ["deepseek-llm", [" ", " a", "  ", "\n", "\n", " b", "\tc", "  "]],
    ["chameleon", ["  ", "a", "  ", "\n", "\n", " b", "\t", "c", "  "]],
    ["gemma4", ["  a  ", "\n\n", " b\tc  "]],
  ])("%s", (name, expected) => {
    expect(pieces(name, "  a  \n\n b\tc  ")).toEqual(expected);
  });

  test("Jais 2 takes runs of spaces in powers of two", () => {
    const lengths = pieces("jais-2", `${" ".repeat(600)}x`).map((piece) => piece.length);
    expect(lengths).toEqual([512, 64, 16, 4, 2, 1, 2]);
  });
});

test("falcon and the default cut all punctuation off, Bloom only what ends a sentence", () => {
  expect(pieces("falcon", "x!=y `z`.")).toEqual(["x", "!=", "y", " ", "`", "z", "`."]);
  expect(pieces("default", "x!=y `z`.")).toEqual(["x", "!=", "y", " `", "z", "`", "."]);
  expect(pieces("bloom", "x=y (z).")).toEqual(["x=y", " (", "z", ")."]);
});

test("long texts of one kind are cut in no time by every family", () => {
  const units = [
    "a",
    "A",
    "aA",
    "\u0301",
    "1",
    "1a",
    " ",
    "\n",
    " \n",
    ".",
    "漢",
    "😀",
    "a ",
    "'s",
    "<",
  ];
  const cutters = preTokenizerNames.map((name) => new Pretokenizer(familyOf(name)?.steps ?? []));
  const start = performance.now();
  for (const unit of units) {
    const text = `${unit.repeat(20_000)}x`;
    for (const cutter of cutters) cutter.split(text);
  }
  expect(performance.now() - start).toBeLessThan(30_000);
});
