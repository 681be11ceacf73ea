/**
 * Random blocks of every type: any bits in the quants, scales that are finite and of the size
 * models have.
 */
import { blockFormats, type DType } from "../../src/tensor/dtype.ts";
import { floatToBfloat, floatToHalf } from "../../src/tensor/half.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Byte offsets of the halves in a block that scale it. */
const scaleOffsets: Readonly<Record<DType, readonly number[]>> = {
  F32: [],
  F16: [],
  BF16: [],
  MXFP4: [],
  Q4_0: [0],
  Q4_1: [0, 2],
  Q5_0: [0],
  Q5_1: [0, 2],
  Q8_0: [0],
  Q2_K: [80, 82],
  Q3_K: [108],
  Q4_K: [0, 2],
  Q5_K: [0, 2],
  Q6_K: [208],
  IQ4_NL: [0],
  IQ4_XS: [0],
};

/** The bytes of `valueCount` values, which must be whole blocks. */
export function randomBlocks(
  dtype: DType,
  valueCount: number,
  random: SeededRandom,
): Uint8Array<ArrayBuffer> {
  const { blockValues, blockBytes } = blockFormats[dtype];
  const bytes = random.bytes((valueCount / blockValues) * blockBytes);
  const view = new DataView(bytes.buffer);
  for (let at = 0; at < bytes.length; at += blockBytes) {
    if (dtype === "F32") view.setFloat32(at, random.normal(), true);
    if (dtype === "F16") view.setUint16(at, floatToHalf(random.normal()), true);
    if (dtype === "BF16") view.setUint16(at, floatToBfloat(random.normal()), true);
    if (dtype === "MXFP4") view.setUint8(at, 118 + random.below(8));
    for (const offset of scaleOffsets[dtype]) {
      const sign = random.below(2) === 0 ? -1 : 1;
      view.setUint16(at + offset, floatToHalf(sign * 2 ** random.between(-10, -5)), true);
    }
  }
  return bytes;
}
