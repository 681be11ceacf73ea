/** SentencePiece on vocabularies small enough to do it by hand. */
import { describe, expect, test } from "bun:test";
import { flag, kind, quietTokenizer, tiny, tinySpm, type Entry } from "./vocabularies.ts";

/** The first id behind the special tokens and the bytes. */
const first = 259;
const n = kind.normal;
const noPrefix = { "tokenizer.ggml.add_space_prefix": flag(false) };

describe("merging", () => {
  const letters: Entry[] = [
    ["a", n, -10],
    ["b", n, -10],
    ["c", n, -10],
    ["▁", n, -10],
  ];

  test("the best score goes first", () => {
    const entries: Entry[] = [...letters, ["ab", n, -3], ["bc", n, -2]];
    const tokenizer = quietTokenizer(tinySpm(entries, noPrefix));
    expect(tokenizer.encode("abc")).toEqual([first, first + 5]);
  });

  test("among equal scores the leftmost goes first", () => {
    const entries: Entry[] = [...letters, ["ab", n, -2], ["bc", n, -2]];
    const tokenizer = quietTokenizer(tinySpm(entries, noPrefix));
    expect(tokenizer.encode("abc")).toEqual([first + 4, first + 2]);
  });

  test("long words, which take another path, give what short ones give", () => {
    const entries: Entry[] = [...letters, ["ab", n, -3], ["bc", n, -2], ["aab", n, -1]];
    const tokenizer = quietTokenizer(tinySpm(entries, noPrefix));
    const short = tokenizer.encode("aabcbab");
    expect(short).toEqual([first, first, first + 5, first + 1, first + 4]);
    expect(tokenizer.encode("aabcbab".repeat(30))).toEqual(Array(30).fill(short).flat());
  });

  test("neighbours without tokens of their own may make one", () => {
    const tokenizer = quietTokenizer(tinySpm([["xy", n, -1]], noPrefix));
    expect(tokenizer.encode("xy")).toEqual([first]);
  });

  test("a token with a space inside is found, though text is cut at spaces", () => {
    const entries: Entry[] = [...letters, ["▁b", n, -2], ["a▁b", n, -1]];
    const tokenizer = quietTokenizer(tinySpm(entries, noPrefix));
    expect(tokenizer.encode("ca b b")).toEqual([first + 2, first + 5, first + 4]);
  });
});

describe("the space before the text", () => {
  const entries: Entry[] = [
    ["▁", n, -5],
    ["a", n, -5],
    ["▁a", n, -1],
    ["▁▁", n, -2],
  ];

  test("is added at the start and behind special tokens, and taken away again", () => {
    const tokenizer = quietTokenizer(tinySpm(entries));
    expect(tokenizer.encode("a")).toEqual([first + 2]);
    expect(tokenizer.encode(" a")).toEqual([first, first + 2]);
    expect(tokenizer.encode("a<s>a", { special: true })).toEqual([first + 2, 1, first + 2]);
    expect(tokenizer.decode([first + 2])).toBe("a");
    expect(tokenizer.decode([1, first + 2, first + 2])).toBe("a a");
  });

  test("is not added between segments that are one text", () => {
    const tokenizer = quietTokenizer(tinySpm(entries));
    const segments = [{ text: "a" }, { text: "a" }, { text: "<s>", special: true }, { text: "a" }];
    expect(tokenizer.encode(segments)).toEqual([first + 2, first + 1, 1, first + 2]);
  });

  test("is not added to a stream, nor where the file says so", () => {
    const tokenizer = quietTokenizer(tinySpm(entries));
    expect(tokenizer.decoder().push(first + 2)).toBe(" a");
    const plain = quietTokenizer(tinySpm(entries, noPrefix));
    expect(plain.encode("a")).toEqual([first + 1]);
    expect(plain.decode([first + 2])).toBe(" a");
  });

  test("the empty text has no ids", () => {
    expect(quietTokenizer(tinySpm(entries)).encode("")).toEqual([]);
  });
});

describe("what the vocabulary cannot spell", () => {
  test("an emoji becomes four byte tokens", () => {
    const tokenizer = quietTokenizer(tinySpm([["▁", n, -1]]));
    expect(tokenizer.encode("😀")).toEqual([first, 3 + 0xf0, 3 + 0x9f, 3 + 0x98, 3 + 0x80]);
    expect(tokenizer.decode([first, 3 + 0xf0, 3 + 0x9f, 3 + 0x98, 3 + 0x80])).toBe("😀");
  });

  test("without byte tokens each character becomes the unknown token", () => {
    const metadata = tiny(
      "llama",
      [
        ["<unk>", kind.unknown],
        ["a", n, -1],
      ],
      noPrefix,
    );
    expect(quietTokenizer(metadata).encode("a😀é")).toEqual([1, 0, 0]);
  });
});

describe("plain text never becomes", () => {
  const entries: Entry[] = [
    ["<", n],
    ["s", n],
    [">", n],
    ["<s", n, 1],
    ["0", n],
    ["x", n],
  ];

  test("a control token", () => {
    const tokenizer = quietTokenizer(tinySpm(entries, noPrefix));
    expect(tokenizer.encode("<s>")).toEqual([first + 3, first + 2]);
    expect(tokenizer.encode("<s>", { special: true })).toEqual([1]);
  });

  test("a byte token by its spelling", () => {
    const more: Entry[] = [...entries, ["<0", n, 1], ["<0x", n, 2], ["41", n, 1], ["<0x41", n, 3]];
    const tokenizer = quietTokenizer(tinySpm(more, noPrefix));
    expect(tokenizer.encode("<0x41>")).not.toContain(3 + 0x41);
    expect(tokenizer.decode(tokenizer.encode("<0x41>"))).toBe("<0x41>");
    expect(tokenizer.decode([3 + 0x41])).toBe("A");
  });
});
