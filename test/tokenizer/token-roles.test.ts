/** What a file says, and what it fails to say, about its tokenizer. */
import { describe, expect, test } from "bun:test";
import { UserError } from "../../src/errors.ts";
import { Metadata } from "../../src/gguf/metadata.ts";
import { createTokenizer } from "../../src/tokenizer/tokenizer.ts";
import {
  changed,
  count,
  flag,
  kind,
  numbers,
  quietTokenizer,
  text,
  texts,
  tiny,
  tinyBpe,
  tinySpm,
  tokenizerWithWarnings,
  type Entry,
} from "./vocabularies.ts";

const control = kind.control;

describe("the kind of tokenizer", () => {
  test.each(["none", "no_vocab"])("%s is no tokenizer, and no error", (name) => {
    const metadata = new Metadata(new Map([["tokenizer.ggml.model", text(name)]]));
    expect(createTokenizer(metadata, () => {})).toBeUndefined();
  });

  test.each([
    [{}, "metadata tokenizer.ggml.model is missing: the file holds no tokenizer"],
    [{ "tokenizer.ggml.model": text("rwkv") }, "tokenizer.ggml.model rwkv is not supported"],
    [
      { "tokenizer.ggml.model": text("toString") },
      "tokenizer.ggml.model toString is not supported",
    ],
    [
      { "tokenizer.ggml.model": text("gpt2") },
      "metadata tokenizer.ggml.tokens is missing: the file holds no vocabulary",
    ],
    [
      { "tokenizer.ggml.model": text("gpt2"), "tokenizer.ggml.tokens": texts([]) },
      "metadata tokenizer.ggml.tokens is missing: the file holds no vocabulary",
    ],
    [
      {
        "tokenizer.ggml.model": text("gpt2"),
        "tokenizer.ggml.pre": text("gpt-2"),
        "tokenizer.ggml.tokens": texts(["a"]),
      },
      "metadata tokenizer.ggml.merges is missing, which this tokenizer needs",
    ],
    [
      { "tokenizer.ggml.model": text("llama"), "tokenizer.ggml.tokens": texts(["a", "b", "c"]) },
      "metadata tokenizer.ggml.scores is missing, which a llama tokenizer needs",
    ],
    [
      {
        "tokenizer.ggml.model": text("llama"),
        "tokenizer.ggml.tokens": texts(["a", "b", "c"]),
        "tokenizer.ggml.token_type": numbers("i32", [1]),
      },
      "metadata tokenizer.ggml.token_type has 1 entries for 3 tokens",
    ],
  ])("%j is an error that says what is wrong", (pairs, message) => {
    const metadata = new Metadata(new Map(Object.entries(pairs)));
    const create = () => createTokenizer(metadata, () => {});
    expect(create).toThrow(UserError);
    expect(create).toThrow(message);
  });

  test("without tokenizer.ggml.token_type all tokens are ordinary", () => {
    const pairs = [...tinyBpe([], ["<x>"]).entries()].filter(
      ([key]) => !key.endsWith("token_type"),
    );
    const tokenizer = quietTokenizer(new Metadata(new Map(pairs)));
    expect(tokenizer.encode("<x>", { special: true })).toEqual([60, 120, 62]);
  });
});

describe("tokenizer.ggml.pre", () => {
  test("a known one is known", () => {
    expect(quietTokenizer(tinyBpe([])).preTokenizer).toEqual({ name: "gpt-2", known: true });
  });

  test("an unknown one is cut by the default rule, with a warning that names it", () => {
    const metadata = tinyBpe(["1 2"], [], { "tokenizer.ggml.pre": text("frobnicate") });
    const [tokenizer, warnings] = tokenizerWithWarnings(metadata);
    expect(tokenizer.preTokenizer).toEqual({ name: "frobnicate", known: false });
    expect(warnings).toEqual([
      "metadata tokenizer.ggml.pre frobnicate is unknown: text is cut by a default rule, " +
        "so ids may differ from those that the model was trained with",
    ]);
    expect(tokenizer.encode("1212")).toEqual([256, 49, 50]);
  });

  test("a missing one is cut by the default rule, with a warning", () => {
    const pairs = [...tinyBpe([]).entries()].filter(([key]) => key !== "tokenizer.ggml.pre");
    const [tokenizer, warnings] = tokenizerWithWarnings(new Metadata(new Map(pairs)));
    expect(tokenizer.preTokenizer).toEqual({ name: undefined, known: false });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toStartWith("metadata tokenizer.ggml.pre is missing: ");
  });

  test("one called default is no reason to warn", () => {
    quietTokenizer(tinyBpe([], [], { "tokenizer.ggml.pre": text("default") }));
  });
});

describe("BOS and EOS", () => {
  test("encoding adds neither, and does not double what the text holds", () => {
    const tokenizer = quietTokenizer(tinySpm([["a", 1]]));
    expect(tokenizer.addBos).toBe(true);
    expect(tokenizer.encode("<s>", { special: true })).toEqual([1]);
    expect(tokenizer.encode("")).toEqual([]);
  });

  test("the ids and wishes of the file", () => {
    const tokenizer = quietTokenizer(
      tinyBpe(
        [],
        [
          ["<b>", control],
          ["<e>", control],
        ],
        {
          "tokenizer.ggml.bos_token_id": count(256),
          "tokenizer.ggml.eos_token_id": count(257),
          "tokenizer.ggml.add_bos_token": flag(true),
          "tokenizer.ggml.add_eos_token": flag(true),
        },
      ),
    );
    expect([tokenizer.bosId, tokenizer.eosId, tokenizer.addBos, tokenizer.addEos]).toEqual([
      256,
      257,
      true,
      true,
    ]);
  });

  test("SentencePiece begins with token 1 and ends with token 2 unless told otherwise", () => {
    const tokenizer = quietTokenizer(tinySpm([]));
    expect([tokenizer.bosId, tokenizer.eosId, tokenizer.addBos, tokenizer.addEos]).toEqual([
      1,
      2,
      true,
      false,
    ]);
    const without = tinySpm([], { "tokenizer.ggml.add_bos_token": flag(false) });
    expect(quietTokenizer(without).addBos).toBe(false);
  });

  test.each([
    ["gpt-2", false],
    ["qwen2", false],
    ["llama-bpe", true],
    ["tekken", true],
    ["chameleon", true],
  ])("a file of %s that says nothing wants BOS: %p", (pre, wanted) => {
    const more = { "tokenizer.ggml.pre": text(pre), "tokenizer.ggml.bos_token_id": count(256) };
    expect(quietTokenizer(tinyBpe([], [["<b>", control]], more)).addBos).toBe(wanted);
  });

  test("Gemma 4 wants BOS even if its file says no", () => {
    const metadata = tiny("gemma4", [["<bos>", control]], {
      "tokenizer.ggml.merges": texts([]),
      "tokenizer.ggml.bos_token_id": count(0),
      "tokenizer.ggml.add_bos_token": flag(false),
    });
    expect(quietTokenizer(metadata).addBos).toBe(true);
  });

  test("an id that is no token is ignored, with a warning", () => {
    const metadata = tinyBpe([], [], {
      "tokenizer.ggml.bos_token_id": count(99_999),
      "tokenizer.ggml.add_bos_token": flag(true),
    });
    const [tokenizer, warnings] = tokenizerWithWarnings(metadata);
    expect([tokenizer.bosId, tokenizer.addBos]).toEqual([undefined, false]);
    expect(warnings).toEqual([
      "metadata tokenizer.ggml.bos_token_id is 99999, which is no token; ignored",
      "metadata tokenizer.ggml.add_bos_token is true, but the file names no such token; ignored",
    ]);
  });

  test("an id of -1 means none, and is no reason to warn", () => {
    const none = tinyBpe([], [], { "tokenizer.ggml.bos_token_id": count(0xffff_ffff) });
    expect(quietTokenizer(none).bosId).toBeUndefined();
  });
});

describe("the end of an answer", () => {
  const ends = (entries: Entry[], more = {}): string[] => {
    const tokenizer = quietTokenizer(tinyBpe([], entries, more));
    return [...tokenizer.endOfGeneration].map((id) => tokenizer.tokenText(id)).sort();
  };

  test("is what the file names, and what is known by its text", () => {
    const named = {
      "tokenizer.ggml.eos_token_id": count(256),
      "tokenizer.ggml.eot_token_id": count(257),
    };
    expect(
      ends(
        [
          ["<e>", control],
          ["<t>", control],
          ["<|im_end|>", control],
        ],
        named,
      ),
    ).toEqual(["<e>", "<t>", "<|im_end|>"]);
    expect(
      ends([
        ["<｜end▁of▁sentence｜>", control],
        ["<|fim_pad|>", control],
      ]),
    ).toEqual(["<|fim_pad|>", "<｜end▁of▁sentence｜>"]);
  });

  test("is a control token whatever the file calls it", () => {
    const tokenizer = quietTokenizer(tinyBpe([], [["<|im_end|>", kind.user]]));
    expect(tokenizer.isControl(256)).toBe(true);
    expect(tokenizer.isEndOfGeneration(256)).toBe(true);
    expect(tokenizer.encode("<|im_end|>")).not.toContain(256);
    expect(tokenizer.decode([97, 256])).toBe("a");
  });

  test("is not <|end|> in gpt-oss, whose marks are shown but not made by plain text", () => {
    const entries: Entry[] = ["<|end|>", "<|return|>", "<|call|>", "<|channel|>"].map((mark) => [
      mark,
      control,
    ]);
    expect(ends(entries)).toEqual(["<|call|>", "<|return|>"]);
    const tokenizer = quietTokenizer(tinyBpe([], entries));
    expect(tokenizer.decode([259, 97, 256, 257])).toBe("<|channel|>a<|end|>");
    expect(tokenizer.encode("<|channel|>")).not.toContain(259);
    expect(tokenizer.encode("<|channel|>", { special: true })).toEqual([259]);
  });

  test("is <|end|> elsewhere", () => {
    expect(ends([["<|end|>", control]])).toEqual(["<|end|>"]);
  });

  test("is not the HTML tag </s> in Gemma 4", () => {
    expect(ends(["</s>", ["<|tool_response>", kind.user]])).toEqual(["<|tool_response>"]);
  });
});

test("tokens by text and text by token", () => {
  const tokenizer = quietTokenizer(changed(tinyBpe(["Ġ a"], [["<x>", control]]), {}));
  expect(tokenizer.vocabSize).toBe(258);
  expect(tokenizer.idOf("<x>")).toBe(257);
  expect(tokenizer.idOf("<y>")).toBeUndefined();
  expect(tokenizer.tokenText(256)).toBe("Ġa");
  expect(tokenizer.tokenBytes(256)).toEqual(Uint8Array.of(0x20, 0x61));
  expect([tokenizer.isControl(257), tokenizer.isControl(256)]).toEqual([true, false]);
});
