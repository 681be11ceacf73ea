/**
 * Files with one thing wrong: each is refused with a line that says what, at once and before
 * anything is allocated.
 */
import { describe, expect, test } from "bun:test";
import { readHeader } from "../../src/gguf/gguf.ts";
import { limits } from "../../src/gguf/limits.ts";
import { MemorySource } from "../../src/gguf/source.ts";
import { refusalOf } from "../helpers/bad-model.ts";
import {
  forgeGguf,
  numbers,
  scalar,
  text,
  texts,
  words,
  type ForgedFile,
  type ForgedTensor,
} from "../helpers/gguf-forge.ts";

const tensor: ForgedTensor = { name: "w", dims: [64, 4], type: "F32" };
const small: ForgedFile = {
  pairs: [
    ["general.architecture", text("llama")],
    ["tokenizer.ggml.tokens", texts(["a", "b", "c"])],
    ["tokenizer.ggml.scores", numbers("f32", [0, -1, -2])],
  ],
  tensors: [tensor, { name: "v", dims: [256], type: "Q4_K" }],
};
const smallBytes = forgeGguf(small);
const notUtf8 = Uint8Array.of(0x6b, 0xff, 0xfe);

function refusal(file: ForgedFile | Uint8Array): string {
  const bytes = file instanceof Uint8Array ? file : forgeGguf(file);
  const source = new MemorySource("bad.gguf", bytes);
  return refusalOf(() => readHeader(source), "bad.gguf");
}

/** The small file with one tensor, changed. */
function withTensor(change: Partial<ForgedTensor>): ForgedFile {
  return { tensors: [{ ...tensor, ...change }] };
}

/** The valid bytes with some of them replaced. */
function patched(at: number, ...bytes: number[]): Uint8Array {
  const result = smallBytes.slice();
  result.set(bytes, at);
  return result;
}

test("the file that the others are made from is valid", () => {
  expect(readHeader(new MemorySource("good.gguf", smallBytes)).tensors.length).toBe(2);
});

type Case = readonly [name: string, file: ForgedFile | Uint8Array, message: string];

const cases: readonly Case[] = [
  // The first 24 bytes.
  ["version 0", { ...small, version: 0 }, "GGUF version 0 does not exist"],
  [
    "version 4",
    { ...small, version: 4 },
    "GGUF version 4 is newer than 3, the newest that zinc reads; update zinc",
  ],
  ["big-endian", { ...small, bigEndian: true }, "big-endian GGUF is not supported; convert it"],
  [
    "big-endian, version 2",
    { ...small, bigEndian: true, version: 2 },
    "big-endian GGUF is not supported",
  ],
  [
    "2^60 tensors",
    { ...small, tensorCount: 2n ** 60n },
    "claims 1152921504606846976 tensors, more than 131072",
  ],
  ["2^31 tensors", { ...small, tensorCount: 2n ** 31n }, "claims 2147483648 tensors"],
  ["2^64 - 1 tensors", { ...small, tensorCount: 2n ** 64n - 1n }, "tensors, more than 131072"],
  ["a few tensors too many", { ...small, tensorCount: 100 }, "truncated: needs at least"],
  [
    "2^60 keys",
    { ...small, pairCount: 2n ** 60n },
    "claims 1152921504606846976 metadata keys, more than 65536",
  ],
  ["2^31 keys", { ...small, pairCount: 2n ** 31n }, "claims 2147483648 metadata keys"],
  ["60000 keys in a small file", { ...small, pairCount: 60_000 }, "truncated: needs at least"],
  ["a key too few", { ...small, pairCount: 2 }, "bad.gguf: "],
  ["version 1 over 64-bit counts", patched(4, 1), "bad.gguf: "],

  // Keys.
  [
    "an empty key",
    {
      pairs: [
        ["a", text("")],
        ["", text("")],
      ],
    },
    "metadata key 1 is empty",
  ],
  [
    "a key that is not UTF-8",
    { pairs: [[notUtf8, text("")]] },
    "metadata key 0 is not valid UTF-8",
  ],
  [
    "a key of 70000 bytes",
    { pairs: [["k".repeat(70_000), text("")]] },
    "metadata key 0 is 70000 bytes long, more than 65535",
  ],
  [
    "a key twice",
    {
      pairs: [
        ["k", text("1")],
        ["k", text("2")],
      ],
    },
    "metadata key k is there twice",
  ],
  [
    "a key with a line break, twice",
    {
      pairs: [
        ["a\nb", text("")],
        ["a\nb", text("")],
      ],
    },
    "key a\\nb is there twice",
  ],
  ["a key past the end", patched(24, 0xff, 0x7f), "truncated: needs at least"],
  [
    "a key of 2^63 bytes",
    patched(24, 0, 0, 0, 0, 0, 0, 0, 0x80),
    "metadata key 0 is 9223372036854775808 bytes long",
  ],

  // Values.
  [
    "a value of type 13",
    { pairs: [["k", words(13, 0)]] },
    "metadata k has value type 13; known are 0 to 12",
  ],
  ["a value of type 2^32 - 1", { pairs: [["k", words(0xffffffff, 0)]] }, "value type 4294967295"],
  ["a boolean of 2", { pairs: [["k", scalar("bool", 2)]] }, "metadata k must be 0 or 1 and is 2"],
  [
    "a text past the end",
    { pairs: [["k", text("abc", 1000)]] },
    "truncated: needs at least 997 more bytes",
  ],
  [
    "a text of 2^40 bytes",
    { pairs: [["k", text("abc", 2n ** 40n)]] },
    "the text of metadata k is 1099511627776 bytes long, more than 67108864",
  ],
  [
    "a text of 2^64 - 1 bytes",
    { pairs: [["k", text("abc", 2n ** 64n - 1n)]] },
    "the text of metadata k is",
  ],
  [
    "an array of type 13",
    { pairs: [["k", words(9, 13, 0, 0)]] },
    "the elements of metadata k has value type 13",
  ],
  [
    "an array of arrays",
    { pairs: [["k", words(9, 9, 1, 0, 0, 0, 0)]] },
    "metadata k is an array of arrays",
  ],
  [
    "an empty array of arrays",
    { pairs: [["k", words(9, 9, 0, 0)]] },
    "metadata k is an array of arrays",
  ],
  [
    "2^40 strings",
    { pairs: [["k", texts(["a"], 2n ** 40n)]] },
    "metadata k claims an array of 1099511627776 elements, more than 16777216",
  ],
  [
    "2^64 - 1 numbers",
    { pairs: [["k", numbers("u8", [1], 2n ** 64n - 1n)]] },
    "metadata k claims an array of",
  ],
  [
    "2^24 strings in a small file",
    { pairs: [["k", texts(["a"], 2 ** 24)]] },
    "truncated: needs at least",
  ],
  [
    "2^24 doubles in a small file",
    { pairs: [["k", numbers("f64", [1], 2 ** 24)]] },
    "truncated: needs at least 134217720 more bytes",
  ],
  ["a string too many", { pairs: [["k", texts(["a", "b"], 3)]] }, "truncated: needs at least"],
  [
    "a string of an array past the end",
    { pairs: [["k", words(9, 8, 1, 0, 50, 0)]] },
    "truncated: needs at least 50 more bytes",
  ],
  [
    "a string of an array of 2^62 bytes",
    { pairs: [["k", words(9, 8, 1, 0, 0, 2 ** 30)]] },
    "a string of metadata k is 4611686018427387904 bytes long",
  ],
  [
    "a boolean array with a 2",
    { pairs: [["k", numbers("bool", [0, 1, 2])]] },
    "metadata k must hold only 0 and 1",
  ],

  // Keys with a fixed type.
  [
    "an architecture that is a number",
    { pairs: [["general.architecture", scalar("u32", 1)]] },
    "metadata general.architecture must be a string and is u32",
  ],
  [
    "tokens that are numbers",
    { pairs: [["tokenizer.ggml.tokens", numbers("u32", [1])]] },
    "metadata tokenizer.ggml.tokens must be an array of strings and is an array of u32",
  ],
  [
    "merges that are one string",
    { pairs: [["tokenizer.ggml.merges", text("a b")]] },
    "metadata tokenizer.ggml.merges must be an array of strings and is string",
  ],
  [
    "scores that are bytes",
    { pairs: [["tokenizer.ggml.scores", numbers("u8", [1])]] },
    "metadata tokenizer.ggml.scores must be an array of floats and is an array of u8",
  ],
  [
    "token types that are floats",
    { pairs: [["tokenizer.ggml.token_type", numbers("f32", [1])]] },
    "metadata tokenizer.ggml.token_type must be an array of integers and is an array of f32",
  ],
  [
    "token types that are strings",
    { pairs: [["tokenizer.ggml.token_type", texts(["1"])]] },
    "metadata tokenizer.ggml.token_type must be an array of integers and is an array of strings",
  ],
  [
    "an end token that is a string",
    { pairs: [["tokenizer.ggml.eos_token_id", text("2")]] },
    "metadata tokenizer.ggml.eos_token_id must be an integer and is string",
  ],
  [
    "an end token that is a float",
    { pairs: [["tokenizer.ggml.eot_token_id", scalar("f32", 2)]] },
    "metadata tokenizer.ggml.eot_token_id must be an integer and is f32",
  ],
  [
    "add_bos that is a number",
    { pairs: [["tokenizer.ggml.add_bos_token", scalar("u8", 1)]] },
    "metadata tokenizer.ggml.add_bos_token must be true or false and is u8",
  ],
  [
    "a template that is an array",
    { pairs: [["tokenizer.chat_template", texts(["a"])]] },
    "metadata tokenizer.chat_template must be a string and is an array of strings",
  ],

  // Alignment.
  ...[0, 1, 3, 4, 7, 24, 33, 2 ** 21, 2 ** 31].map(
    (alignment) =>
      [
        `an alignment of ${alignment}`,
        { pairs: [["general.alignment", scalar("u32", alignment)]] },
        `general.alignment is ${alignment}, not a power of two from 8 to 1048576`,
      ] as const,
  ),
  [
    "an alignment of -32",
    { pairs: [["general.alignment", scalar("i32", -32)]] },
    "general.alignment is -32",
  ],
  [
    "an alignment of 2^63",
    { pairs: [["general.alignment", scalar("u64", 2n ** 63n)]] },
    "metadata general.alignment is out of range",
  ],
  [
    "an alignment in words",
    { pairs: [["general.alignment", text("32")]] },
    "metadata general.alignment must be an integer and is string",
  ],

  // The tensor table.
  ["a tensor without a name", withTensor({ name: "" }), "the name of tensor 0 is empty"],
  [
    "a name that is not UTF-8",
    withTensor({ name: notUtf8 }),
    "the name of tensor 0 is not valid UTF-8",
  ],
  [
    "a name of 256 bytes",
    withTensor({ name: "n".repeat(256) }),
    "the name of tensor 0 is 256 bytes long, more than 255",
  ],
  ["a name twice", { tensors: [tensor, tensor] }, "tensor w is listed twice"],
  ["0 dimensions", withTensor({ dims: [] }), "tensor w has 0 dimensions, not 1 to 4"],
  ["5 dimensions", withTensor({ dims: [1, 1, 1, 1, 1] }), "tensor w has 5 dimensions, not 1 to 4"],
  ["9 dimensions", withTensor({ dimCount: 9 }), "tensor w has 9 dimensions"],
  [
    "2^32 - 1 dimensions",
    withTensor({ dimCount: 0xffffffff }),
    "tensor w has 4294967295 dimensions",
  ],
  [
    "the shape [4, 0]",
    withTensor({ dims: [4, 0] }),
    "tensor w has the shape [4, 0]: dimension 1 is 0",
  ],
  ["the shape [0]", withTensor({ dims: [0] }), "tensor w has the shape [0]: dimension 0 is 0"],
  [
    "the shape [2^62]",
    withTensor({ dims: [2n ** 62n] }),
    "tensor w has the shape [4611686018427387904], which is too large",
  ],
  ["the shape [2^63]", withTensor({ dims: [2n ** 63n] }), "which is too large"],
  ["a product that wraps to 0", withTensor({ dims: [2n ** 32n, 2n ** 32n] }), "which is too large"],
  ["a product of 2^53", withTensor({ dims: [2n ** 27n, 2n ** 26n] }), "which is too large"],
  [
    "more bytes than 2^53",
    withTensor({ dims: [2n ** 26n, 2n ** 26n] }),
    "bytes, which no file has",
  ],
  [
    "a row of 33 in Q4_0",
    withTensor({ dims: [33, 2], type: "Q4_0" }),
    "tensor w has rows of 33 values, not whole Q4_0 blocks of 32",
  ],
  [
    "a row of 128 in Q4_K",
    withTensor({ dims: [128, 2], type: "Q4_K" }),
    "tensor w has rows of 128 values, not whole Q4_K blocks of 256",
  ],
  [
    "a row of 128 in IQ2_XXS",
    withTensor({ dims: [128], type: 16 }),
    "tensor w has rows of 128 values, not whole IQ2_XXS blocks of 256",
  ],
  ["an offset of 16", withTensor({ offset: 16 }), "tensor w has offset 16, not a multiple of 32"],
  [
    "an offset past the end",
    withTensor({ offset: 2 ** 20 }),
    "truncated: needs 1049600 more bytes",
  ],
  ["an offset of 2^50", withTensor({ offset: 2n ** 50n }), "truncated: needs 11258999"],
  [
    "an offset of 2^64 - 32",
    withTensor({ offset: 2n ** 64n - 32n }),
    "tensor w has offset 18446744073709551616, which no file reaches",
  ],
  [
    "an offset past the end, of an unknown type",
    withTensor({ type: 199, offset: 2 ** 20 }),
    "truncated: needs",
  ],
  [
    "tensors at the same place",
    { tensors: [tensor, { ...tensor, name: "v", offset: 0 }] },
    "tensors w and v overlap",
  ],
  [
    "tensors that overlap by a little",
    {
      tensors: [
        tensor,
        { ...tensor, name: "v", offset: 992 },
        { ...tensor, name: "z", offset: 4096 },
      ],
    },
    "tensors w and v overlap",
  ],
];

describe("is refused:", () => {
  test.each(cases)("%s", (...[, file, message]) => {
    expect(refusal(file)).toContain(message);
  });
});

describe("a file cut off", () => {
  const sixteenths = Array.from({ length: 15 }, (_, i) => i + 1);

  test.each(sixteenths)("at %i/16 says that it is truncated", (part) => {
    const length = Math.floor((smallBytes.length * part) / 16);
    expect(refusal(smallBytes.slice(0, length))).toMatch(
      /bad\.gguf: truncated: needs (at least )?\d+ more bytes? \(it has \d+\); download it again/,
    );
  });

  test("anywhere at all says so too", () => {
    for (let length = 1; length < smallBytes.length; length++) {
      expect(refusal(smallBytes.slice(0, length))).toContain("truncated: needs");
    }
  });

  test("in the weights says how much is missing, to the byte", () => {
    expect(refusal(smallBytes.slice(0, -1))).toContain("truncated: needs 1 more byte (it");
    expect(refusal(smallBytes.slice(0, -1100))).toContain("truncated: needs 1100 more bytes");
  });

  test("by hand says to join the parts", () => {
    const remedy = "join all its parts, in order, into one .gguf file first";
    const first = new MemorySource("big.gguf.part1of2", smallBytes.slice(0, 999));
    expect(refusalOf(() => readHeader(first), first.name)).toContain(remedy);
    const second = new MemorySource("big.gguf-split-b", Uint8Array.of(1, 2, 3, 200, 0));
    expect(refusalOf(() => readHeader(second), second.name)).toContain(remedy);
  });
});

test("keys that are names in JavaScript are keys like others", () => {
  const keys = ["constructor", "__proto__", "toString", "hasOwnProperty"];
  const file = forgeGguf({ pairs: keys.map((key) => [key, text("x")] as const) });
  const { metadata } = readHeader(new MemorySource("good.gguf", file));
  expect([...metadata.entries()].map(([key]) => key)).toEqual(keys);
  expect(metadata.string("__proto__")).toBe("x");
  expect(metadata.get("valueOf")).toBeUndefined();
});

test("a message stays short, however long the names in the file are", () => {
  const key = "k".repeat(60_000);
  const line = refusal({
    pairs: [
      [key, text("")],
      [key, text("")],
    ],
  });
  expect(line).toContain("bad.gguf: metadata key kkkkk");
  expect(line.length).toBeLessThan(500);
});

test("the limits leave room for every known model", () => {
  expect(limits.tensors).toBeGreaterThan(100_000);
  expect(limits.arrayElements).toBeGreaterThan(10_000_000);
});
