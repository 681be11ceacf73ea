/**
 * The quantizers of the tests themselves: blocks that come back as the weights they were made from.
 */
import { describe, expect, test } from "bun:test";
import { dequantize } from "../../src/tensor/dequantize.ts";
import { blockFormats, byteSize, dtypes, type DType } from "../../src/tensor/dtype.ts";
import { quantize } from "../helpers/quantize.ts";
import { randomBlocks } from "../helpers/random-blocks.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

/**
 * Root mean square of the error, as a share of the weights' deviation, that each type must stay
 * under.
 */
const errorBounds: Readonly<Record<DType, number>> = {
  F32: 0,
  F16: 0.0004,
  BF16: 0.003,
  Q8_0: 0.006,
  Q6_K: 0.02,
  Q5_K: 0.04,
  Q5_0: 0.05,
  Q5_1: 0.04,
  Q4_K: 0.08,
  Q4_0: 0.1,
  Q4_1: 0.08,
  IQ4_NL: 0.09,
  IQ4_XS: 0.09,
  MXFP4: 0.13,
  Q3_K: 0.2,
  Q2_K: 0.35,
};

function relativeError(wanted: Float32Array, found: Float32Array): number {
  let error = 0;
  let size = 0;
  for (const [i, value] of wanted.entries()) {
    error += (value - (found[i] ?? NaN)) ** 2;
    size += value ** 2;
  }
  return Math.sqrt(error / size);
}

describe.each(dtypes)("%s", (dtype) => {
  test("keeps random weights as closely as its bits allow", () => {
    const weights = new SeededRandom(1).floats(4096, 0.02);
    const bytes = quantize(dtype, weights);
    expect(bytes.length).toBe(byteSize(dtype, 4096));
    const error = relativeError(weights, dequantize(dtype, bytes));
    expect(error).toBeLessThanOrEqual(errorBounds[dtype]);
  });

  test("keeps zeros, and values of one sign, without infinities", () => {
    const count = blockFormats[dtype].blockValues;
    const zeros = dequantize(dtype, quantize(dtype, new Float32Array(count)));
    expect(zeros.every((value) => value === 0)).toBe(true);
    const positive = new Float32Array(count).fill(3);
    const error = relativeError(positive, dequantize(dtype, quantize(dtype, positive)));
    expect(error).toBeLessThan(0.2);
  });

  test("has random blocks with finite values of sane size", () => {
    const values = dequantize(dtype, randomBlocks(dtype, 4096, new SeededRandom(3)));
    expect(values.every((value) => Math.abs(value) < 200)).toBe(true);
    expect(values.some((value) => value !== values[0])).toBe(true);
  });
});
