/** Numbers for kernels to be tried on: reproducible, and hard where kernels tend to break. */
import { blockFormats, type DType } from "../../tensor/dtype.ts";
import { floatToBfloat, floatToHalf } from "../../tensor/half.ts";

/** A small generator with a seed (Marsaglia's xorshift32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0 || 1;
  }

  u32(): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return this.#state >>> 0;
  }

  /** Uniform in [low, high). */
  between(low: number, high: number): number {
    return low + (this.u32() / 2 ** 32) * (high - low);
  }

  floats(count: number, magnitude = 1): Float32Array {
    return Float32Array.from({ length: count }, () => this.between(-magnitude, magnitude));
  }
}

/** Where the half-precision scales of a block stand. */
const halfOffsets: Readonly<Record<DType, readonly number[]>> = {
  F32: [],
  F16: [],
  BF16: [],
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
  MXFP4: [],
};

/**
 * Blocks with every bit random and finite scales. Every seventh scale is a denormal half, as real
 * K-quants have.
 */
export function randomBlocks(dtype: DType, blockCount: number, random: Random): Uint8Array {
  const { blockBytes } = blockFormats[dtype];
  const bytes = new Uint8Array(blockCount * blockBytes);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < bytes.length; i++) bytes[i] = random.u32() >>> 13;
  for (let block = 0; block < blockCount; block++) {
    const at = block * blockBytes;
    const scale = () => random.between(-1, 1) * (block % 7 === 6 ? 4e-5 : 0.02);
    for (const offset of halfOffsets[dtype])
      view.setUint16(at + offset, floatToHalf(scale()), true);
    if (dtype === "MXFP4") bytes[at] = 110 + ((random.u32() >>> 20) % 16);
    if (dtype === "F32") view.setFloat32(at, random.between(-1, 1), true);
    if (dtype === "F16") view.setUint16(at, floatToHalf(random.between(-1, 1)), true);
    if (dtype === "BF16") view.setUint16(at, floatToBfloat(random.between(-1, 1)), true);
  }
  return bytes;
}
