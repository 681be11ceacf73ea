/**
 * K-quants: 256 values in sub-blocks of 16 or 32, whose scales are small integers times the block's
 * d (and dmin). Value i is in sub-block i / 16 or i / 32; `i & 31` is its place in a group of 32,
 * which share a bit position.
 */
import { readHalf, readNibble, type BlockDequantizer } from "./block.ts";

/** scales[16] (low nibble scale, high nibble min), qs[64], d, dmin. */
export const q2k: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at + 80);
  const dmin = readHalf(view, at + 82);
  for (let i = 0; i < 256; i++) {
    const sc = readNibble(view, at + (i >> 4), 0);
    const m = readNibble(view, at + (i >> 4), 1);
    out[to + i] = d * sc * twoBits(view, at + 16, i) - dmin * m;
  }
};

/** hmask[32], qs[64], scales[12], d. A clear bit of hmask subtracts 4. */
export const q3k: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at + 108);
  for (let i = 0; i < 256; i++) {
    const sc = q3kScale(view, at + 96, i >> 4);
    const high = (view.getUint8(at + (i & 31)) >> (i >> 5)) & 1;
    out[to + i] = d * (sc - 32) * (twoBits(view, at + 32, i) + 4 * high - 4);
  }
};

/** d, dmin, scales[12], qs[128]. */
export const q4k: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at);
  const dmin = readHalf(view, at + 2);
  for (let i = 0; i < 256; i++) {
    const { sc, m } = scaleAndMin(view, at + 4, i >> 5);
    out[to + i] = d * sc * pairedNibble(view, at + 16, i) - dmin * m;
  }
};

/** d, dmin, scales[12], qh[32] (bit s of byte l: fifth bit of place l in sub-block s), qs[128]. */
export const q5k: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at);
  const dmin = readHalf(view, at + 2);
  for (let i = 0; i < 256; i++) {
    const { sc, m } = scaleAndMin(view, at + 4, i >> 5);
    const high = (view.getUint8(at + 16 + (i & 31)) >> (i >> 5)) & 1;
    out[to + i] = d * sc * (pairedNibble(view, at + 48, i) + 16 * high) - dmin * m;
  }
};

/**
 * ql[128], qh[64], scales i8[16], d. Each half of 128 values is four groups of 32: the low nibbles
 * of 64 bytes of ql are groups 0 and 1, the high ones 2 and 3; two bits of qh complete each.
 */
export const q6k: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at + 208);
  for (let i = 0; i < 256; i++) {
    const half = i >> 7;
    const group = (i >> 5) & 3;
    const low = readNibble(view, at + 64 * half + (i & 63), group >> 1);
    const high = (view.getUint8(at + 128 + 32 * half + (i & 31)) >> (2 * group)) & 3;
    const sc = view.getInt8(at + 192 + (i >> 4));
    out[to + i] = d * sc * (low + 16 * high - 32);
  }
};

/**
 * Two bits of value i in Q2_K and Q3_K: 32 bytes a half; each group of 32 is two bits further up.
 */
function twoBits(view: DataView, qs: number, i: number): number {
  return (view.getUint8(qs + 32 * (i >> 7) + (i & 31)) >> (2 * ((i >> 5) & 3))) & 3;
}

/** Four bits of value i in Q4_K and Q5_K: 32 bytes hold two sub-blocks, low nibbles the first. */
function pairedNibble(view: DataView, qs: number, i: number): number {
  return readNibble(view, qs + 32 * (i >> 6) + (i & 31), (i >> 5) & 1);
}

/**
 * Scale j of 16 in Q3_K: six bits, 0 to 63. Bytes 0 to 7 hold the low nibbles, bytes 8 to 11 the
 * upper bits.
 */
function q3kScale(view: DataView, scales: number, j: number): number {
  const low = readNibble(view, scales + (j & 7), j >> 3);
  const high = (view.getUint8(scales + 8 + (j & 3)) >> (2 * (j >> 2))) & 3;
  return low + 16 * high;
}

/** Scale and min of sub-block j of 8 in Q4_K and Q5_K: six bits each in 12 bytes. */
function scaleAndMin(view: DataView, scales: number, j: number): { sc: number; m: number } {
  if (j < 4) {
    return { sc: view.getUint8(scales + j) & 63, m: view.getUint8(scales + j + 4) & 63 };
  }
  // The last four keep their low nibbles together and their upper bits above the first four.
  const low = scales + j + 4;
  return {
    sc: readNibble(view, low, 0) + 16 * (view.getUint8(scales + j - 4) >> 6),
    m: readNibble(view, low, 1) + 16 * (view.getUint8(scales + j) >> 6),
  };
}
