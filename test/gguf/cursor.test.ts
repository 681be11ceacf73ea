/** The cursor: numbers and strings across the borders of the pieces that a header is loaded in. */
import { describe, expect, test } from "bun:test";
import { Cursor } from "../../src/gguf/cursor.ts";
import { readHeader } from "../../src/gguf/gguf.ts";
import { MemorySource, type ByteSource } from "../../src/gguf/source.ts";
import { refusalOf } from "../helpers/bad-model.ts";
import { forgeGguf, numbers, scalar, text, texts } from "../helpers/gguf-forge.ts";

const pieceBytes = 2 ** 18;

/** Counts what is read. */
class CountingSource extends MemorySource {
  bytesRead = 0;

  override readIntoSync(target: Uint8Array, offsetBytes: number): void {
    this.bytesRead += target.length;
    super.readIntoSync(target, offsetBytes);
  }
}

test("numbers have their widths and byte order", () => {
  const bytes = Uint8Array.of(
    1,
    0xff,
    2,
    1,
    0xfe,
    0xff,
    4,
    3,
    2,
    1,
    0xfd,
    0xff,
    0xff,
    0xff,
    0,
    0,
    0x20,
    0xc1,
  );
  const cursor = new Cursor(new MemorySource("m", bytes));
  expect([cursor.u8(), cursor.i8(), cursor.u16(), cursor.i16()]).toEqual([1, -1, 0x0102, -2]);
  expect([cursor.u32(), cursor.i32(), cursor.f32()]).toEqual([0x01020304, -3, -10]);
  expect(cursor.offset).toBe(18);
  expect(refusalOf(() => cursor.u8(), "m")).toContain("truncated: needs at least 1 more byte");
});

test("64-bit numbers are exact as bigints, and as sizes up to 2^53", () => {
  const bytes = Uint8Array.of(
    1,
    0,
    0,
    0,
    0,
    0,
    0,
    0x80,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0xff,
    0x1f,
    0,
  );
  const cursor = new Cursor(new MemorySource("m", bytes));
  expect(cursor.u64()).toBe(2n ** 63n + 1n);
  expect(cursor.i64()).toBe(-1n);
  expect(cursor.size()).toBe(2 ** 53 - 1);
});

describe("the border between two pieces", () => {
  const distances = Array.from({ length: 60 }, (_, i) => i);

  test.each(distances)("may be %i bytes into other values", (into) => {
    // The first text fills the file up to `into` bytes before the border.
    const filler = "x".repeat(pieceBytes - 24 - (8 + 3 + 4 + 8) - into);
    const bytes = forgeGguf({
      pairs: [
        ["pad", text(filler)],
        ["n", scalar("u64", 0x0123456789abcdefn)],
        ["s", text("naïve")],
        ["f", numbers("f64", [0.1, -2])],
      ],
    });
    const { metadata } = readHeader(new MemorySource("m", bytes));
    expect(metadata.get("n")).toEqual({ type: "u64", value: 0x0123456789abcdefn });
    expect(metadata.string("s")).toBe("naïve");
    expect(metadata.floats("f")).toEqual(Float64Array.of(0.1, -2));
    expect(metadata.string("pad")?.length).toBe(filler.length);
  });

  test("may be anywhere in an array of strings", () => {
    const words = Array.from({ length: 100_000 }, (_, i) => `wörd ${i}`);
    const bytes = forgeGguf({
      pairs: [
        ["words", texts(words)],
        ["after", text("yes")],
      ],
    });
    expect(bytes.length).toBeGreaterThan(6 * pieceBytes);
    const { metadata } = readHeader(new MemorySource("m", bytes));
    const strings = metadata.strings("words");
    expect(Array.from({ length: strings?.length ?? 0 }, (_, i) => strings?.at(i))).toEqual(words);
    expect(metadata.string("after")).toBe("yes");
  });

  test("may lie inside one long string", () => {
    const long = "é".repeat(400_000);
    const bytes = forgeGguf({ pairs: [["words", texts(["a", long, "b"])]] });
    const strings = readHeader(new MemorySource("m", bytes)).metadata.strings("words");
    expect([strings?.at(0), strings?.at(1) === long, strings?.at(2)]).toEqual(["a", true, "b"]);
  });
});

describe("only the header is read", () => {
  test("of a file with weights", () => {
    const source = new CountingSource(
      "m",
      forgeGguf({
        pairs: [["a", text("b")]],
        tensors: [{ name: "w", dims: [2 ** 20], type: "F32" }],
      }),
    );
    readHeader(source);
    expect(source.bytesRead).toBe(pieceBytes);
  });

  test("and at most so much of it, whatever the file's size", () => {
    const endless: ByteSource = {
      name: "endless",
      sizeBytes: 2 ** 40,
      readIntoSync: (target) => void target.fill(0),
      readInto: async () => {},
      close: () => {},
      [Symbol.dispose]: () => {},
    };
    const cursor = new Cursor(endless);
    expect(refusalOf(() => cursor.ensure(2 ** 29 + 1), "endless")).toContain(
      "endless: the header is longer than 536870912 bytes",
    );
    cursor.ensure(2 ** 29);
  });
});
