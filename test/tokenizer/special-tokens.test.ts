/** Which tokens are found literally in a text, and which are not. */
import { describe, expect, test } from "bun:test";
import { kind, quietTokenizer, text, tinyBpe, tinySpm, type Entry } from "./vocabularies.ts";

const control = kind.control;
const user = kind.user;
const [s, i, x, lt, gt] = [115, 105, 120, 60, 62];

const entries: Entry[] = [
  ["<s>", control], // 256
  ["<i>", user], // 257
  ["<s><i>", control], // 258
  ["<u>", kind.unknown], // 259
  ["日本", user], // 260
];
const tokenizer = quietTokenizer(tinyBpe([], entries));

describe("with special parsing", () => {
  const encode = (input: string): number[] => tokenizer.encode(input, { special: true });

  test("control, user-defined and unknown tokens are found", () => {
    expect(encode("<s>x<i><u>x")).toEqual([256, x, 257, 259, x]);
  });

  test("the longest is found first, wherever it stands", () => {
    expect(encode("<s><s><i>")).toEqual([256, 258]);
  });

  test("half a token is text", () => {
    expect(encode("<s<s>")).toEqual([lt, s, 256]);
    expect(encode("<s")).toEqual([lt, s]);
  });

  test("tokens outside ASCII are found", () => {
    expect(encode("x日本x")).toEqual([x, 260, x]);
  });
});

describe("without special parsing", () => {
  test("control tokens are text like any other, user-defined ones are found", () => {
    expect(tokenizer.encode("<s>")).toEqual([lt, s, gt]);
    expect(tokenizer.encode("<s><i>")).toEqual([lt, s, gt, 257]);
    expect(tokenizer.encode("<u>")).toEqual([lt, 117, gt]);
  });

  test("a text of all special tokens holds no control token", () => {
    const all = entries.map(([spelling]) => spelling).join(" ");
    for (const id of tokenizer.encode(all)) expect(tokenizer.isControl(id)).toBe(false);
  });
});

describe("segments", () => {
  test("say for themselves whether control tokens count", () => {
    const ids = tokenizer.encode([
      { text: "<s>x", special: true },
      { text: "<s>", special: false },
      { text: "<s>", special: true },
    ]);
    expect(ids).toEqual([256, x, lt, s, gt, 256]);
  });

  test("take what the call says if they say nothing", () => {
    expect(tokenizer.encode([{ text: "<s>" }], { special: true })).toEqual([256]);
    expect(tokenizer.encode([{ text: "<s>" }])).toEqual([lt, s, gt]);
  });

  test("never make a token across a border", () => {
    const ids = tokenizer.encode([
      { text: "<s", special: true },
      { text: "><i>", special: true },
    ]);
    expect(ids).toEqual([lt, s, gt, 257]);
  });

  test("are one text to the merges", () => {
    const merging = quietTokenizer(tinyBpe(["x i"], [["<s>", control]]));
    expect(merging.encode([{ text: "<s>x", special: true }, { text: "i" }])).toEqual([257, 256]);
  });

  test("may be empty, or none", () => {
    expect(tokenizer.encode([])).toEqual([]);
    expect(tokenizer.encode([{ text: "" }, { text: "i" }, { text: "" }])).toEqual([i]);
  });
});

describe("space beside a special token", () => {
  const name = { "general.name": text("Phi-3 mini") };
  const marks: Entry[] = [
    ["<m>", control],
    ["<|endoftext|>", control],
    ["x", 1],
    ["▁x", 1, 1],
    ["▁", 1],
  ];
  const phi = quietTokenizer(tinySpm(marks, name));
  const [mark, end, wordX] = [259, 260, 262];

  test("Phi-3's tokens swallow the space behind them, all but a few", () => {
    const special = { special: true };
    expect(phi.encode("<m> \n\tx", special)).toEqual([mark, wordX]);
    expect(phi.encode("<|endoftext|> x", special)).toEqual([end, 263, wordX]);
    expect(phi.encode("<s> x", special)).toEqual([1, 263, wordX]);
  });

  test("also where the space is in the next segment", () => {
    expect(phi.encode([{ text: "<m>\n", special: true }, { text: "  x" }])).toEqual([mark, wordX]);
  });

  test("Jina's mask swallows the space before it", () => {
    const jina = quietTokenizer(
      tinyBpe([], [["<mask>", control]], { "tokenizer.ggml.pre": text("jina-v2-de") }),
    );
    expect(jina.encode("x  <mask> x", { special: true })).toEqual([x, 256, 32, x]);
  });
});

describe("decoding", () => {
  test("leaves control and unknown tokens out unless asked", () => {
    expect(tokenizer.decode([256, x, 257, 259])).toBe("x<i>");
    expect(tokenizer.decode([256, x, 257, 259], { special: true })).toBe("<s>x<i><u>");
  });
});
