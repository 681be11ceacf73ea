/** Byte-pair encoding on vocabularies small enough to do it by hand. */
import { describe, expect, test } from "bun:test";
import { MergeTable } from "../../src/tokenizer/merge-table.ts";
import { TokenTable } from "../../src/tokenizer/token-table.ts";
import {
  byteAlphabet,
  changed,
  count,
  kind,
  quietTokenizer,
  strings,
  text,
  texts,
  tiny,
  tinyBpe,
  tokenizerWithWarnings,
  type Entry,
} from "./vocabularies.ts";

const a = 97;
const b = 98;
const c = 99;
const d = 100;

describe("merging", () => {
  test("the earliest merge in the list goes first, wherever it stands", () => {
    // 256 = bc, 257 = ab: "abc" is a + bc although ab comes first in the text.
    expect(quietTokenizer(tinyBpe(["b c", "a b"])).encode("abc")).toEqual([a, 256]);
    expect(quietTokenizer(tinyBpe(["a b", "b c"])).encode("abc")).toEqual([256, c]);
  });

  test("among equal merges the leftmost goes first", () => {
    const tokenizer = quietTokenizer(tinyBpe(["a a", "aa a"]));
    expect(tokenizer.encode("aaa")).toEqual([257]);
    expect(tokenizer.encode("aaaa")).toEqual([256, 256]);
    expect(tokenizer.encode("aaaaa")).toEqual([256, 257]);
  });

  test("merges build on merges", () => {
    const tokenizer = quietTokenizer(tinyBpe(["a b", "c d", "ab cd"]));
    expect(tokenizer.encode("abcdab")).toEqual([258, 256]);
  });

  test("long pieces, which take another path, give what short ones give", () => {
    const tokenizer = quietTokenizer(tinyBpe(["a b", "ab ab", "b c", "abab c"]));
    const short = tokenizer.encode("ababcabd");
    expect(short).toEqual([259, 256, d]);
    expect(tokenizer.encode("ababcabd".repeat(50))).toEqual(Array(50).fill(short).flat());
  });

  test("a space belongs to the word behind it", () => {
    const tokenizer = quietTokenizer(tinyBpe(["Ġ a", "Ġa b"]));
    expect(tokenizer.encode("ab ab")).toEqual([a, b, 257]);
  });

  test("bytes outside ASCII are spelled in the alphabet of GPT-2", () => {
    const tokenizer = quietTokenizer(tinyBpe(["Ã ©"]));
    expect(tokenizer.encode("é")).toEqual([256]);
    expect(tokenizer.encode("\u0000\u00ad😀")).toEqual([0, 0xc2, 0xad, 0xf0, 0x9f, 0x98, 0x80]);
    expect(tokenizer.decode([256, 0, 0xf0, 0x9f, 0x98, 0x80])).toBe("é\u0000😀");
  });

  test("a lone surrogate is U+FFFD", () => {
    const tokenizer = quietTokenizer(tinyBpe([]));
    expect(tokenizer.encode("a\ud800")).toEqual([a, 0xef, 0xbf, 0xbd]);
  });

  test("the empty text has no ids", () => {
    expect(quietTokenizer(tinyBpe(["a b"])).encode("")).toEqual([]);
  });

  test("a byte without a token is left out", () => {
    const metadata = tiny("gpt2", ["a", "b"], {
      "tokenizer.ggml.pre": text("gpt-2"),
      "tokenizer.ggml.merges": texts([]),
    });
    expect(quietTokenizer(metadata).encode("azb")).toEqual([0, 1]);
  });
});

describe("pieces that are tokens as a whole", () => {
  const merges = ["a b"];
  const entries: Entry[] = ["abc", ["abd", kind.control]];

  test("are not built up from merges in families that say so", () => {
    const metadata = tinyBpe(merges, entries, { "tokenizer.ggml.pre": text("llama-bpe") });
    expect(quietTokenizer(metadata).encode("abc")).toEqual([257]);
  });

  test("are built up from merges everywhere else", () => {
    expect(quietTokenizer(tinyBpe(merges, entries)).encode("abc")).toEqual([256, c]);
  });

  test("never become a control token", () => {
    const metadata = tinyBpe(merges, entries, { "tokenizer.ggml.pre": text("llama-bpe") });
    expect(quietTokenizer(metadata).encode("abd")).toEqual([256, d]);
  });
});

describe("odd vocabularies", () => {
  test("a spelling that comes twice encodes to its first id, and both ids decode", () => {
    const tokenizer = quietTokenizer(tinyBpe(["a b"], ["ab", "x", "x", "x"]));
    expect(tokenizer.vocabSize).toBe(261);
    expect(tokenizer.encode("abx")).toEqual([256, 120]);
    expect(tokenizer.idOf("ab")).toBe(256);
    expect(tokenizer.decode([256, 257, 258, 259, 260])).toBe("ababxxx");
  });

  test("empty tokens and tokens of nothing but spaces do no harm", () => {
    const spaces = "Ġ".repeat(200);
    const entries: Entry[] = [
      "",
      ["", kind.control],
      ["", kind.user],
      " ",
      spaces,
      ["  ", kind.user],
    ];
    const tokenizer = quietTokenizer(tinyBpe(["Ġ Ġ"], entries));
    expect(tokenizer.encode("a    b", { special: true })).toEqual([a, 262, 262, b]);
    expect(tokenizer.encode("a b")).toEqual([a, 32, b]);
    expect(tokenizer.decode([257, 258, 259, 260, 261])).toBe(` ${" ".repeat(200)}`);
    expect(tokenizer.tokenText(257)).toBe("");
    expect(tokenizer.idOf("")).toBeUndefined();
  });

  test("tokens outside the alphabet of GPT-2 decode to their own text", () => {
    const tokenizer = quietTokenizer(tinyBpe([], ["▁x", "日本", "Ġ日"]));
    expect(tokenizer.decode([256, 257, 258])).toBe("▁x日本 日");
  });

  test("ids outside the vocabulary decode to nothing", () => {
    const tokenizer = quietTokenizer(tinyBpe([]));
    expect(tokenizer.decode([a, 999_999, -1, b])).toBe("ab");
    expect(tokenizer.tokenText(999_999)).toBe("");
  });

  test("merges of what is no token are ignored with a warning", () => {
    const [tokenizer, warnings] = tokenizerWithWarnings(
      tiny("gpt2", [...byteAlphabet, "ab"], {
        "tokenizer.ggml.pre": text("gpt-2"),
        "tokenizer.ggml.merges": texts(["a b", "x y", "nospace"]),
      }),
    );
    expect(tokenizer.encode("abxy")).toEqual([256, 120, 121]);
    expect(warnings).toEqual(["tokenizer.ggml.merges: 2 of 3 looked at name what is no token"]);
  });
});

describe("merges whose halves hold spaces or newlines", () => {
  const tokens = ["a", " b", "a ", "b", "a  b", "a b", " a", " a b", "\n", "\n a", " a b c", " c"];
  const table = new TokenTable(strings(tokens));
  const id = (token: string): number => tokens.indexOf(token);

  test.each([
    // merge, left, right, joined
    ["a  b", "a", " b", "a b"],
    [" a  b", " a", " b", " a b"],
    ["\n  a", "\n", " a", "\n a"],
    [" a b  c", " a b", " c", " a b c"],
  ])("%j is cut so that both halves and the whole are tokens", (merge, left, right, joined) => {
    const merges = new MergeTable(strings([merge]), table);
    expect(merges.token(merges.find(id(left), id(right)))).toBe(id(joined));
  });

  test("the first cut that fits is taken", () => {
    const merges = new MergeTable(strings(["a  b"]), table);
    expect(merges.find(id("a "), id("b"))).toBe(-1);
  });
});

describe("plain spelling (Gemma 4)", () => {
  const entries: Entry[] = [
    ["<unk>", kind.unknown],
    "▁",
    "a",
    "b",
    "▁a",
    "▁ab",
    "\n",
    "\n\n",
    ["<0xC3>", kind.byte],
    ["<0xA9>", kind.byte],
    "a▁b",
  ];
  const merges = ["▁ a", "▁a b", "a ▁", "a ▁b"];
  const metadata = tiny("gemma4", entries, { "tokenizer.ggml.merges": texts(merges.slice(0, 2)) });

  test("spaces are U+2581, and what has no token becomes byte tokens", () => {
    const tokenizer = quietTokenizer(metadata);
    expect(tokenizer.encode(" ab a")).toEqual([5, 4]);
    expect(tokenizer.encode("aé")).toEqual([2, 8, 9]);
    expect(tokenizer.decode([5, 4, 8, 9])).toBe(" ab aé");
  });

  test("a character without byte tokens becomes the unknown token", () => {
    const named = changed(metadata, { "tokenizer.ggml.unknown_token_id": count(0) });
    expect(quietTokenizer(named).encode("a😀b")).toEqual([2, 0, 3]);
    expect(quietTokenizer(metadata).encode("a😀b")).toEqual([2, 3]);
  });

  test("a run of newlines that is a token is that token, other runs are single ones", () => {
    const tokenizer = quietTokenizer(metadata);
    expect(tokenizer.encode("a\n\nb")).toEqual([2, 7, 3]);
    expect(tokenizer.encode("a\n\n\nb")).toEqual([2, 6, 6, 6, 3]);
  });

  test("needs no tokenizer.ggml.pre, and ignores one", () => {
    const named = tiny("gemma4", entries, {
      "tokenizer.ggml.merges": texts(merges.slice(0, 2)),
      "tokenizer.ggml.pre": text("default"),
    });
    expect(quietTokenizer(named).preTokenizer).toEqual({ name: "gemma4", known: true });
  });

  test("a token that goes on across a space is found, though text is cut at spaces", () => {
    const across = tiny("gemma4", [...entries, "▁b"], {
      "tokenizer.ggml.merges": texts(["▁ b", "a ▁b"]),
    });
    expect(quietTokenizer(across).encode("a b a b")).toEqual([10, 1, 10]);
  });
});
