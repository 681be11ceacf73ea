/**
 * Valid headers read equal to what was forged: versions, every type of value, positions of tensors.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readHeader } from "../../src/gguf/gguf.ts";
import { openGguf, openGgufBytes } from "../../src/gguf/file.ts";
import { MemorySource } from "../../src/gguf/source.ts";
import { byteSize, dtypes } from "../../src/tensor/dtype.ts";
import {
  forgeGguf,
  numbers,
  scalar,
  text,
  texts,
  type ForgedFile,
  type ForgedValue,
} from "../helpers/gguf-forge.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

const read = (file: ForgedFile) => readHeader(new MemorySource("m.gguf", forgeGguf(file)));

const scalars: [string, ForgedValue, unknown][] = [
  ["u8", scalar("u8", 255), 255],
  ["i8", scalar("i8", -128), -128],
  ["u16", scalar("u16", 65535), 65535],
  ["i16", scalar("i16", -32768), -32768],
  ["u32", scalar("u32", 4294967295), 4294967295],
  ["i32", scalar("i32", -2147483648), -2147483648],
  ["f32", scalar("f32", 0.5), 0.5],
  ["f64", scalar("f64", 1e-5), 1e-5],
  ["u64", scalar("u64", 2n ** 64n - 1n), 2n ** 64n - 1n],
  ["i64", scalar("i64", -(2n ** 63n)), -(2n ** 63n)],
  ["bool", scalar("bool", true), true],
  ["string", text("naïve 😀"), "naïve 😀"],
];

describe("values", () => {
  test.each(scalars)("a %s is read as it was written", (type, value, expected) => {
    const { metadata } = read({ pairs: [["x", value]] });
    expect(metadata.get("x")).toEqual({ type, value: expected } as never);
  });

  test.each([
    ["u8", [0, 255]],
    ["i8", [-1, 1]],
    ["u16", [65535]],
    ["i16", [-2]],
    ["u32", [4294967295]],
    ["i32", [-5, 5]],
    ["f32", [0.5, -2]],
    ["f64", [0.1]],
    ["bool", [1, 0]],
  ] as const)("an array of %s is read as numbers", (type, expected) => {
    // A byte in front, so that the elements are not aligned.
    const pairs = [
      ["pad", scalar("u8", 1)],
      ["x", numbers(type, expected)],
    ] as const;
    const { metadata } = read({ pairs });
    const found = metadata.get("x");
    expect(found?.type === "numbers" && found.value.elementType).toBe(type);
    expect([...Array.from(metadata.numbers("x") ?? [])]).toEqual([...expected]);
  });

  test("64-bit integers in arrays stay exact, and become numbers only where they fit", () => {
    const { metadata } = read({
      pairs: [
        ["big", numbers("u64", [2n ** 63n])],
        ["small", numbers("i64", [-7n, 2n ** 40n])],
      ],
    });
    const big = metadata.get("big");
    expect(big?.type === "numbers" && big.value.values).toEqual(BigUint64Array.of(2n ** 63n));
    expect(metadata.numbers("small")).toEqual([-7, 2 ** 40]);
    expect(() => metadata.numbers("big")).toThrow(
      "m.gguf: metadata big is out of range: 9223372036854775808",
    );
  });

  test("strings of an array keep their bytes, valid UTF-8 or not", () => {
    const words = ["", "a", "\u{feff}", "😀".repeat(50), Uint8Array.of(0xe2, 0x82), " "];
    const { metadata } = read({
      pairs: [
        ["x", texts(words)],
        ["y", text("after")],
      ],
    });
    const strings = metadata.strings("x");
    expect(strings?.length).toBe(6);
    expect(strings?.at(0)).toBe("");
    expect(strings?.at(2)).toBe("\u{feff}");
    expect(strings?.at(3)).toBe("😀".repeat(50));
    expect(strings?.at(4)).toBe("\u{fffd}");
    expect(strings?.bytesAt(4)).toEqual(Uint8Array.of(0xe2, 0x82));
    expect(strings?.at(5)).toBe(" ");
    expect(() => strings?.at(6)).toThrow("string 6 of 6");
  });

  test("empty arrays and empty strings are legal", () => {
    const pairs = [
      ["x", texts([])],
      ["y", numbers("f32", [])],
      ["z", text("")],
    ] as const;
    const { metadata } = read({ pairs });
    expect(metadata.strings("x")?.length).toBe(0);
    expect(metadata.numbers("y")).toEqual(new Float32Array(0));
    expect(metadata.string("z")).toBe("");
  });

  test("a text that is not UTF-8 is shown with replacement characters", () => {
    const { metadata } = read({ pairs: [["general.name", text(Uint8Array.of(0x61, 0xff))]] });
    expect(metadata.string("general.name")).toBe("a\u{fffd}");
  });
});

describe("typed access", () => {
  const { metadata } = read({
    pairs: [
      ["words", texts(["a"])],
      ["floats", numbers("f32", [1])],
      ["ints", numbers("u8", [1])],
      ["bools", numbers("bool", [true])],
      ["text", text("t")],
      ["minus", scalar("i32", -1)],
      ["half", scalar("f32", 0.5)],
      ["huge", scalar("u64", 2n ** 60n)],
    ],
  });

  test.each<[string, () => unknown]>([
    ["text must be a number and is string", () => metadata.number("text")],
    ["text must be true or false and is string", () => metadata.boolean("text")],
    ["words must be a string and is an array of strings", () => metadata.string("words")],
    ["floats must be an array of strings and is an array of f32", () => metadata.strings("floats")],
    [
      "words must be an array of numbers and is an array of strings",
      () => metadata.numbers("words"),
    ],
    [
      "floats must be an array of integers and is an array of f32",
      () => metadata.integers("floats"),
    ],
    [
      "bools must be an array of integers and is an array of bool",
      () => metadata.integers("bools"),
    ],
    ["ints must be an array of floats and is an array of u8", () => metadata.floats("ints")],
    ["minus is out of range: -1", () => metadata.count("minus")],
    ["half must be an integer and is f32", () => metadata.count("half")],
    ["huge is out of range: 1152921504606846976", () => metadata.number("huge")],
  ])("another type is an error: %s", (message, get) => {
    expect(get).toThrow(`m.gguf: metadata ${message}`);
  });

  test("what is missing is undefined", () => {
    expect(metadata.count("missing")).toBeUndefined();
    expect(metadata.integers("missing")).toBeUndefined();
    expect(metadata.floats("missing")).toBeUndefined();
    expect(metadata.has("missing")).toBe(false);
    expect(metadata.has("text")).toBe(true);
    expect([...metadata.entries()].length).toBe(8);
  });
});

describe("tensors", () => {
  test.each([1, 2, 3])("version %i has the same tables", (version) => {
    const bytes = forgeGguf({
      version,
      pairs: [
        ["a", text("b")],
        ["words", texts(["x", "yz"])],
      ],
      tensors: [
        { name: "one", dims: [3], type: "F32", bytes: new SeededRandom(1).bytes(12) },
        { name: "two", dims: [64, 2, 1, 2], type: "Q4_0", bytes: new SeededRandom(2).bytes(144) },
      ],
    });
    using file = openGgufBytes("m.gguf", bytes);
    expect(file.version).toBe(version);
    expect(file.metadata.string("a")).toBe("b");
    expect(file.metadata.strings("words")?.at(1)).toBe("yz");
    const [one, two] = file.tensors;
    expect(one).toMatchObject({ name: "one", dims: [3], valueCount: 3, sizeBytes: 12 });
    expect(two).toMatchObject({
      name: "two",
      dims: [64, 2, 1, 2],
      valueCount: 256,
      typeId: 2,
      typeName: "Q4_0",
      dtype: "Q4_0",
      fileIndex: 0,
      offsetBytes: bytes.length - 144,
      sizeBytes: 144,
    });
    expect(file.tensor("two")).toBe(two);
    expect(file.tensor("three")).toBeUndefined();
    if (one) expect(file.readTensorSync(one)).toEqual(new SeededRandom(1).bytes(12));
    if (two) expect(file.readTensorSync(two)).toEqual(new SeededRandom(2).bytes(144));
  });

  test("each type has its name, its dtype and its size", () => {
    const tensors = dtypes.map((type) => ({ name: type, dims: [256, 2], type }));
    const header = read({ tensors });
    expect(header.tensors.map((t) => [t.typeName, t.dtype, t.sizeBytes])).toEqual(
      dtypes.map((type) => [type, type, byteSize(type, 512)]),
    );
  });

  test.each([31, 32, 33, 1, 0])(
    "a header that ends %i bytes over the alignment has its data at the next boundary",
    (over) => {
      const make = (padding: number) =>
        forgeGguf({
          pairs: [["pad", text("x".repeat(padding))]],
          tensors: [{ name: "t", dims: [8], type: "F32", bytes: new SeededRandom(9).bytes(32) }],
        });
      // Without padding: 24 + (8 + 3 + 4 + 8) + (8 + 1 + 4 + 8 + 4 + 8) = 80 bytes.
      const bytes = make(16 + over);
      using file = openGgufBytes("m.gguf", bytes);
      const [tensor] = file.tensors;
      expect(tensor?.offsetBytes).toBe(Math.ceil((96 + over) / 32) * 32);
      if (tensor) expect(file.readTensorSync(tensor)).toEqual(new SeededRandom(9).bytes(32));
    },
  );

  test.each([8, 64, 4096])("an alignment of %i is followed", (alignment) => {
    const header = read({
      alignment,
      pairs: [["general.alignment", scalar("u32", alignment)]],
      tensors: [
        { name: "a", dims: [1], type: "F32" },
        { name: "b", dims: [1], type: "F32" },
      ],
    });
    const [a, b] = header.tensors;
    expect(header.alignmentBytes).toBe(alignment);
    expect(a && a.offsetBytes % alignment).toBe(0);
    expect(a && b && b.offsetBytes - a.offsetBytes).toBe(alignment);
  });

  test("a file with a vocabulary and no tensors is fine", () => {
    const bytes = forgeGguf({ pairs: [["tokenizer.ggml.tokens", texts(["a"])]] });
    using file = openGgufBytes("v.gguf", bytes);
    expect(file.tensors).toEqual([]);
  });

  test("a file with neither is fine", () => {
    expect(read({}).tensors).toEqual([]);
  });

  test("tensors may come in any order, with gaps", () => {
    const header = read({
      tensors: [
        { name: "last", dims: [8], type: "F32", offset: 128 },
        { name: "first", dims: [8], type: "F32", offset: 0 },
        { name: "next", dims: [8], type: "F32", offset: 160 },
      ],
    });
    expect(header.tensors.map((t) => t.name)).toEqual(["last", "first", "next"]);
  });
});

test("a large vocabulary is read in a moment", () => {
  const tokens = Array.from({ length: 250_000 }, (_, i) => `token${i}`);
  const merges = Array.from({ length: 500_000 }, (_, i) => `left${i} right`);
  const types = new Array<number>(250_000).fill(1);
  const bytes = forgeGguf({
    pairs: [
      ["tokenizer.ggml.tokens", texts(tokens)],
      ["tokenizer.ggml.merges", texts(merges)],
      ["tokenizer.ggml.token_type", numbers("i32", types)],
    ],
  });
  const source = new MemorySource("m.gguf", bytes);
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const start = process.cpuUsage();
    const { metadata } = readHeader(source);
    // Processor time, since other work on the machine must not fail the test.
    const { user, system } = process.cpuUsage(start);
    times.push((user + system) / 1000);
    expect(metadata.strings("tokenizer.ggml.tokens")?.at(249_999)).toBe("token249999");
    expect(metadata.strings("tokenizer.ggml.merges")?.at(499_999)).toBe("left499999 right");
  }
  expect(Math.min(...times)).toBeLessThan(150);
});

const shared = join(import.meta.dir, "../../../shared");

describe.skipIf(!existsSync(shared))("files beside the checkout (shared)", () => {
  test("all models open, and their types can be computed with", () => {
    const models = readdirSync(join(shared, "models")).filter((name) => name.endsWith(".gguf"));
    expect(models.length).toBeGreaterThan(0);
    for (const name of models) {
      using model = openGguf(join(shared, "models", name));
      expect(model.metadata.strings("tokenizer.ggml.tokens")?.length).toBe(4096);
      for (const tensor of model.tensors) expect(model.dtypeOf(tensor)).toBeDefined();
    }
  });

  test("all vocabularies open from memory", () => {
    const names = readdirSync(join(shared, "vectors"));
    const vocabularies = names.filter((name) => name.endsWith(".zst"));
    expect(vocabularies.length).toBeGreaterThan(0);
    for (const name of vocabularies) {
      const bytes = Bun.zstdDecompressSync(readFileSync(join(shared, "vectors", name)));
      using file = openGgufBytes(name, bytes);
      expect(file.metadata.strings("tokenizer.ggml.tokens")?.length).toBeGreaterThan(30_000);
      expect(file.tensors).toEqual([]);
    }
  });
});
