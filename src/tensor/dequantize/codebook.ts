/**
 * Types whose nibbles are indices into a table. Nibbles are in the order of `simple.ts`, 32 values
 * at a time.
 */
import { readHalf, readNibble, type BlockDequantizer } from "./block.ts";

/** The levels of IQ4_NL and IQ4_XS: denser near 0, where most weights are. */
export const iq4Levels = Int8Array.of(
  -127,
  -104,
  -83,
  -65,
  -49,
  -35,
  -22,
  -10,
  1,
  13,
  25,
  38,
  53,
  69,
  89,
  113,
);

/**
 * Twice the values of E2M1 (a sign, two exponent bits, one of mantissa), so that they are integers.
 */
export const e2m1Doubled = Int8Array.of(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);

/** d, qs[16]. */
export const iq4nl: BlockDequantizer = (view, at, out, to) => {
  lookUp(view, at + 2, iq4Levels, readHalf(view, at), out, to);
};

/** d, scales_h u16, scales_l[4], qs[128]: eight groups of 32 with a six-bit scale each. */
export const iq4xs: BlockDequantizer = (view, at, out, to) => {
  const d = readHalf(view, at);
  const scalesHigh = view.getUint16(at + 2, true);
  for (let g = 0; g < 8; g++) {
    const sc = readNibble(view, at + 4 + (g >> 1), g & 1) + 16 * ((scalesHigh >> (2 * g)) & 3);
    lookUp(view, at + 8 + 16 * g, iq4Levels, d * (sc - 32), out, to + 32 * g);
  }
};

/** e, qs[16]: the scale is the power of two 2^(e - 127), halved because the table is doubled. */
export const mxfp4: BlockDequantizer = (view, at, out, to) => {
  lookUp(view, at + 1, e2m1Doubled, 2 ** (view.getUint8(at) - 128), out, to);
};

function lookUp(
  view: DataView,
  qs: number,
  levels: Int8Array,
  scale: number,
  out: Float32Array,
  to: number,
): void {
  for (let i = 0; i < 32; i++) {
    const level = levels[readNibble(view, qs + (i & 15), i >> 4)] ?? 0;
    out[to + i] = level * scale;
  }
}
