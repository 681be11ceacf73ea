/**
 * Dequantizers: a block by hand for each type, and checksums of what llama.cpp makes of random
 * blocks.
 */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openGguf } from "../../src/gguf/file.ts";
import { dequantize } from "../../src/tensor/dequantize.ts";
import { blockFormats, dtypes, type DType } from "../../src/tensor/dtype.ts";
import { randomBlocks } from "../helpers/random-blocks.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

const one = [0x00, 0x3c];
const half = [0x00, 0x38];

/** A block of zeros but for the bytes given by their offsets. */
function block(dtype: DType, bytes: Record<number, number | readonly number[]>): Uint8Array {
  const result = new Uint8Array(blockFormats[dtype].blockBytes);
  for (const [at, values] of Object.entries(bytes)) result.set([values].flat(), Number(at));
  return result;
}

/** Values that are 0 but for the given ranges: [from, to, value], `to` included. */
function values(...ranges: readonly (readonly [from: number, to: number, value: number])[]) {
  const result = new Float32Array(256);
  for (const [from, to, value] of ranges) result.fill(value, from, to + 1);
  return [...result];
}

/** Minus zero counts as zero here. */
function valuesOf(dtype: DType, bytes: Uint8Array): number[] {
  return [...dequantize(dtype, bytes)].map((value) => value + 0);
}

const upToFifteen = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/** Low nibbles 0 to 15, high nibbles 15 to 0. */
const crossing = upToFifteen.map((j) => j | ((15 - j) << 4));

describe("a block by hand", () => {
  test("F32 is little-endian", () => {
    expect(valuesOf("F32", Uint8Array.of(0, 0, 0x20, 0xc1))).toEqual([-10]);
  });

  test("F16 is a half", () => {
    expect(valuesOf("F16", Uint8Array.of(0x00, 0x3c, 0x01, 0x00))).toEqual([1, 2 ** -24]);
  });

  test("BF16 is the upper half of a float32", () => {
    expect(valuesOf("BF16", Uint8Array.of(0x80, 0x3f, 0x48, 0xc1))).toEqual([1, -12.5]);
  });

  test("Q4_0 has values around 0, low nibbles first", () => {
    expect(valuesOf("Q4_0", block("Q4_0", { 0: half, 2: crossing }))).toEqual([
      -4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 3.5, 3, 2.5, 2, 1.5,
      1, 0.5, 0, -0.5, -1, -1.5, -2, -2.5, -3, -3.5, -4,
    ]);
  });

  test("Q4_1 has values from its minimum up", () => {
    expect(valuesOf("Q4_1", block("Q4_1", { 0: half, 2: one, 4: crossing }))).toEqual([
      1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 8.5, 8, 7.5, 7, 6.5, 6, 5.5,
      5, 4.5, 4, 3.5, 3, 2.5, 2, 1.5, 1,
    ]);
  });

  test("Q5_0 takes the fifth bit of value i from bit i", () => {
    // Bits 1 and 31 are set.
    const bytes = block("Q5_0", { 0: half, 2: [0x02, 0, 0, 0x80], 6: crossing });
    expect(valuesOf("Q5_0", bytes)).toEqual([
      -8, 0.5, -7, -6.5, -6, -5.5, -5, -4.5, -4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5, -0.5, -1, -1.5,
      -2, -2.5, -3, -3.5, -4, -4.5, -5, -5.5, -6, -6.5, -7, -7.5, 0,
    ]);
  });

  test("Q5_1 takes the fifth bit of value i from bit i", () => {
    const bytes = block("Q5_1", { 0: half, 2: one, 4: [0x02, 0, 0, 0x80], 8: crossing });
    expect(valuesOf("Q5_1", bytes)).toEqual([
      1, 9.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 8.5, 8, 7.5, 7, 6.5, 6, 5.5,
      5, 4.5, 4, 3.5, 3, 2.5, 2, 1.5, 9,
    ]);
  });

  test("Q8_0 has signed bytes", () => {
    const bytes = block("Q8_0", { 0: half, 2: [0, 1, 127, 128, 255], 33: 0x81 });
    expect(valuesOf("Q8_0", bytes)).toEqual([
      0, 0.5, 63.5, -64, -0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 0, -63.5,
    ]);
  });

  test("Q2_K has a scale and a minimum for each 16 values", () => {
    const bytes = block("Q2_K", {
      0: [0x21, 0x03, 0x02],
      15: 0x1f,
      16: 0b0110,
      32: 0b11,
      79: 0xc0,
      80: one,
      82: half,
    });
    expect(valuesOf("Q2_K", bytes)).toEqual(
      values([0, 0, 1], [1, 15, -1], [16, 16, 9], [32, 32, 2], [240, 254, -0.5], [255, 255, 44.5]),
    );
  });

  test("Q3_K has a third bit and signed scales of six bits", () => {
    const bytes = block("Q3_K", {
      0: [0xfe, ...Array(31).fill(0xff)],
      32: [0b01, 0b11],
      48: 0b01_0000,
      95: 0x80,
      96: [0x01, 0, 0, 0, 0, 0x03, 0, 0xf0, 0b10, 0b0100, 0, 0x80],
      108: half,
    });
    expect(valuesOf("Q3_K", bytes)).toEqual(
      values([0, 0, -1.5], [1, 1, 1.5], [80, 80, -6.5], [255, 255, 15]),
    );
  });

  test("Q4_K has scales and minima of six bits, some of them in two pieces", () => {
    const bytes = block("Q4_K", {
      0: one,
      2: half,
      4: [3, 0, 0, 0x40, 2, 0, 0, 0x80, 0, 0, 0, 0x21],
      16: 0x05,
      143: 0xf0,
    });
    expect(valuesOf("Q4_K", bytes)).toEqual(
      values([0, 0, 14], [1, 31, -1], [224, 254, -17], [255, 255, 238]),
    );
  });

  test("Q5_K adds a fifth bit for each sub-block", () => {
    const bytes = block("Q5_K", {
      0: one,
      2: half,
      4: [3, 0, 0, 0x40, 2, 0, 0, 0x80, 0, 0, 0, 0x21],
      16: 0x01,
      47: 0x80,
      48: 0x05,
      175: 0xf0,
    });
    expect(valuesOf("Q5_K", bytes)).toEqual(
      values([0, 0, 62], [1, 31, -1], [224, 254, -17], [255, 255, 510]),
    );
  });

  test("Q6_K has signed scales and values around 0", () => {
    const bytes = block("Q6_K", {
      0: 0x07,
      16: 0x40,
      127: 0xf0,
      128: 0b10,
      144: 0b10_0000,
      191: 0xc0,
      192: 2,
      197: 1,
      207: 0xfd,
      208: half,
    });
    expect(valuesOf("Q6_K", bytes)).toEqual(
      values(
        [0, 0, 7],
        [1, 15, -32],
        [80, 80, 2],
        [81, 95, -16],
        [240, 254, 48],
        [255, 255, -46.5],
      ),
    );
  });

  test("IQ4_NL looks its nibbles up", () => {
    expect(valuesOf("IQ4_NL", block("IQ4_NL", { 0: one, 2: crossing }))).toEqual([
      -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113, 113, 89, 69, 53, 38,
      25, 13, 1, -10, -22, -35, -49, -65, -83, -104, -127,
    ]);
  });

  test("IQ4_XS has a scale of six bits for each 32 values", () => {
    const bytes = block("IQ4_XS", {
      0: half,
      2: [0x02, 0x40],
      4: [0x02, 0, 0, 0x10],
      8: 0x0f,
      135: 0x80,
    });
    expect(valuesOf("IQ4_XS", bytes)).toEqual(
      values([0, 0, 113], [1, 31, -127], [32, 223, 2032], [224, 254, 952.5], [255, 255, -7.5]),
    );
  });

  test("MXFP4 has a power of two and four-bit floats", () => {
    expect(valuesOf("MXFP4", block("MXFP4", { 0: 128, 1: crossing }))).toEqual([
      0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12, -12, -8, -6, -4, -3, -2, -1, 0, 12,
      8, 6, 4, 3, 2, 1, 0,
    ]);
    // The least scale is below the normal float32 numbers.
    expect(valuesOf("MXFP4", block("MXFP4", { 0: 0, 1: 0x01 }))[0]).toBe(2 ** -128);
  });
});

describe("the caller's array", () => {
  test("is filled and given back", () => {
    const out = new Float32Array(2);
    expect(dequantize("F16", Uint8Array.of(0x00, 0x3c, 0x00, 0x40), out)).toBe(out);
    expect([...out]).toEqual([1, 2]);
  });

  test("may not be of another length", () => {
    const bytes = new Uint8Array(4);
    expect(() => dequantize("F16", bytes, new Float32Array(3))).toThrow("F16: 2 values do not fit");
  });

  test("needs whole blocks, at any position in memory", () => {
    expect(() => dequantize("Q8_0", new Uint8Array(35))).toThrow("35 bytes are not whole blocks");
    const shifted = Uint8Array.of(9, 0x80, 0x3f).subarray(1);
    expect([...dequantize("BF16", shifted)]).toEqual([1]);
  });
});

/**
 * CRC-32 of the float32 bytes that llama.cpp 0.5.0 makes of 16384 values of random blocks, seeded
 * with the type's id: `tools/peer_llama.py dequantize` on a file that holds them.
 */
const peerChecksums: Readonly<Record<DType, number>> = {
  F32: 0x3fc59b89,
  F16: 0xf7efabcf,
  Q4_0: 0x2134ffd2,
  Q4_1: 0x8837725a,
  Q5_0: 0x0c11621a,
  Q5_1: 0xf0e81c39,
  Q8_0: 0xbf982e91,
  Q2_K: 0xa9ec8493,
  Q3_K: 0x01c56af1,
  Q4_K: 0xd4688434,
  Q5_K: 0xff24bdbb,
  Q6_K: 0x352d8b54,
  IQ4_NL: 0x69701448,
  IQ4_XS: 0xd0b71361,
  BF16: 0xdba1397f,
  MXFP4: 0x78dc1804,
};

test.each(dtypes)("random blocks of %s give what llama.cpp makes of them, to the bit", (dtype) => {
  const bytes = randomBlocks(dtype, 16384, new SeededRandom(blockFormats[dtype].id));
  const floats = dequantize(dtype, bytes);
  expect(Bun.hash.crc32(new Uint8Array(floats.buffer))).toBe(peerChecksums[dtype]);
});

/** CRC-32 over the float32 bytes of all tensors of a model, by llama.cpp as above. */
const modelChecksums: Readonly<Record<string, number>> = {
  "spark-llama-F16.gguf": 0xa72a9402,
  "spark-llama-Q4_K_M.gguf": 0x517b417e,
  "spark-llama-Q5_K_M.gguf": 0x0be5b962,
  "spark-llama-Q6_K.gguf": 0x25c6b49b,
  "spark-llama-Q8_0.gguf": 0x0d88410d,
  "spark-qwen35-F16.gguf": 0x69c0070f,
  "spark-qwen35-Q4_K_M.gguf": 0x8fcabcca,
  "spark-qwen35-Q8_0.gguf": 0x43401e33,
  "spark-qwen35moe-Q4_K_M.gguf": 0x1d001d80,
  "spark-qwen35moe-Q8_0.gguf": 0x538a3de4,
};

const models = join(import.meta.dir, "../../../shared/models");

describe.skipIf(!existsSync(models))("models beside the checkout (shared/models)", () => {
  test.each(Object.entries(modelChecksums))("%s has llama.cpp's weights", (name, checksum) => {
    using model = openGguf(join(models, name));
    let crc = 0;
    for (const tensor of model.tensors) {
      const floats = dequantize(model.dtypeOf(tensor), model.readTensorSync(tensor));
      crc = Bun.hash.crc32(new Uint8Array(floats.buffer), crc);
    }
    expect(crc).toBe(checksum);
  });
});
