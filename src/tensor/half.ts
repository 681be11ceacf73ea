/**
 * 16-bit floats as bits: IEEE half precision and bfloat16. Rounding is to nearest, ties to even.
 */

const scratch = new DataView(new ArrayBuffer(4));

/** The value of a half. */
export function halfToFloat(bits: number): number {
  scratch.setUint16(0, bits);
  return scratch.getFloat16(0);
}

/** The half nearest to a value; beyond 65520 it is infinite. */
export function floatToHalf(value: number): number {
  scratch.setFloat16(0, value);
  return scratch.getUint16(0);
}

/** The value of a bfloat16, which is the upper half of a float32. */
export function bfloatToFloat(bits: number): number {
  scratch.setUint32(0, bits * 2 ** 16);
  return scratch.getFloat32(0);
}

/** The bfloat16 nearest to a float32; the value is rounded to float32 first. */
export function floatToBfloat(value: number): number {
  scratch.setFloat32(0, value);
  const bits = scratch.getUint32(0);
  // Rounding could carry a NaN's bits into infinity: keep it and make it quiet.
  if (Number.isNaN(value)) return (bits >>> 16) | 0x40;
  const half = 0x7fff + ((bits >>> 16) & 1);
  return (bits + half) >>> 16;
}
