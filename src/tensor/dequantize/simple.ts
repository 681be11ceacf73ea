/**
 * Float types, and blocks of 32 values with one scale. In these, byte j holds value j in its low
 * nibble and value j + 16 in its high one.
 */
import { bfloatToFloat } from "../half.ts";
import { readHalf, readNibble, type BlockDequantizer } from "./block.ts";

export const f32: BlockDequantizer = (view, at, out, to) => {
  out[to] = view.getFloat32(at, true);
};

export const f16: BlockDequantizer = (view, at, out, to) => {
  out[to] = readHalf(view, at);
};

export const bf16: BlockDequantizer = (view, at, out, to) => {
  out[to] = bfloatToFloat(view.getUint16(at, true));
};

/** d, qs[16]. */
export const q40: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at);
  for (let i = 0; i < 32; i++) {
    const q = readNibble(view, at + 2 + (i & 15), i >> 4);
    out[to + i] = (q - 8) * d;
  }
};

/** d, m, qs[16]. */
export const q41: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at);
  const m = readHalf(view, at + 2);
  for (let i = 0; i < 32; i++) {
    const q = readNibble(view, at + 4 + (i & 15), i >> 4);
    out[to + i] = q * d + m;
  }
};

/** d, qh (bit i is the fifth bit of value i), qs[16]. */
export const q50: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at);
  const qh = view.getUint32(at + 2, true);
  for (let i = 0; i < 32; i++) {
    const q = readNibble(view, at + 6 + (i & 15), i >> 4) + 16 * ((qh >>> i) & 1);
    out[to + i] = (q - 16) * d;
  }
};

/** d, m, qh, qs[16]. */
export const q51: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at);
  const m = readHalf(view, at + 2);
  const qh = view.getUint32(at + 4, true);
  for (let i = 0; i < 32; i++) {
    const q = readNibble(view, at + 8 + (i & 15), i >> 4) + 16 * ((qh >>> i) & 1);
    out[to + i] = q * d + m;
  }
};

/** d, qs i8[32]. */
export const q80: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at);
  for (let i = 0; i < 32; i++) out[to + i] = view.getInt8(at + 2 + i) * d;
};
