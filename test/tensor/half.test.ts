/** 16-bit floats: every bit pattern, and rounding at the places where it goes wrong. */
import { describe, expect, test } from "bun:test";
import { bfloatToFloat, floatToBfloat, floatToHalf, halfToFloat } from "../../src/tensor/half.ts";

/** The definition of a half, without the conversions that the code uses. */
function halfByDefinition(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

describe("halves", () => {
  test("each of the 65536 has the value that IEEE defines, and becomes itself again", () => {
    for (let bits = 0; bits < 0x10000; bits++) {
      const value = halfToFloat(bits);
      if (!Object.is(value, halfByDefinition(bits))) throw new Error(`half ${bits} is ${value}`);
      if (!Number.isNaN(value) && floatToHalf(value) !== bits) throw new Error(`${bits} changed`);
    }
  });

  test.each([
    [1, 0x3c00],
    [-2, 0xc000],
    [-0, 0x8000],
    [65504, 0x7bff],
    [65519.99, 0x7bff],
    [65520, 0x7c00],
    [-1e9, 0xfc00],
    [Infinity, 0x7c00],
    [NaN, 0x7e00],
    // Halfway between two halves: the even one.
    [1 + 2 ** -11, 0x3c00],
    [1 + 3 * 2 ** -11, 0x3c02],
    [1 + 2 ** -11 + 2 ** -30, 0x3c01],
    // Subnormal halves.
    [2 ** -24, 0x0001],
    [2 ** -25, 0x0000],
    [3 * 2 ** -25, 0x0002],
    [2 ** -25 * 1.0001, 0x0001],
    [2 ** -14 - 2 ** -25, 0x0400],
  ])("%d becomes the half nearest to it", (value, bits) => {
    expect(floatToHalf(value)).toBe(bits);
  });
});

describe("bfloat16", () => {
  test.each([
    [0x3f80, 1],
    [0xc040, -3],
    [0x0001, 2 ** -133],
    [0x7f7f, 3.3895313892515355e38],
    [0xff80, -Infinity],
    [0x7fc0, NaN],
  ])("%i is the upper half of a float32", (bits, value) => {
    expect(bfloatToFloat(bits)).toBe(value);
  });

  test.each([
    [1, 0x3f80],
    [-0, 0x8000],
    [1 + 2 ** -8, 0x3f80],
    [1 + 3 * 2 ** -8, 0x3f82],
    [1 + 2 ** -8 + 2 ** -20, 0x3f81],
    [3.4e38, 0x7f80],
    [-3.4e38, 0xff80],
    [NaN, 0x7fc0],
    [Infinity, 0x7f80],
  ])("%d becomes the bfloat nearest to it", (value, bits) => {
    expect(floatToBfloat(value)).toBe(bits);
  });
});
