/**
 * Floats to blocks of every type: correct and simple, not the best that a format can do. For tests
 * that need files of every type from given weights.
 */
import { e2m1Doubled, iq4Levels } from "../../src/tensor/dequantize/codebook.ts";
import { blockFormats, type DType } from "../../src/tensor/dtype.ts";
import { floatToBfloat, floatToHalf, halfToFloat } from "../../src/tensor/half.ts";

/** Writes the values of one block, as many as the type's block has, at byte `at`. */
type BlockQuantizer = (values: Float32Array, view: DataView, at: number) => void;

/** The blocks of `values`, whose number must be a multiple of the type's block. */
export function quantize(dtype: DType, values: Float32Array): Uint8Array<ArrayBuffer> {
  const { blockValues, blockBytes } = blockFormats[dtype];
  if (values.length % blockValues !== 0) {
    throw new RangeError(`${values.length} values are not whole ${dtype} blocks`);
  }
  const blockCount = values.length / blockValues;
  const bytes = new Uint8Array(blockCount * blockBytes);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < blockCount; i++) {
    const block = values.subarray(i * blockValues, (i + 1) * blockValues);
    quantizers[dtype](block, view, i * blockBytes);
  }
  return bytes;
}

const quantizers: Readonly<Record<DType, BlockQuantizer>> = {
  F32: (values, view, at) => view.setFloat32(at, values[0] ?? 0, true),
  F16: (values, view, at) => writeHalf(view, at, values[0] ?? 0),
  BF16: (values, view, at) => view.setUint16(at, floatToBfloat(values[0] ?? 0), true),

  Q4_0: (values, view, at) => {
    const d = writeHalf(view, at, -extreme(values) / 8);
    values.forEach((x, i) => orNibble(view, at + 2, i, level(x, d, -8, 7) + 8));
  },
  Q4_1: (values, view, at) => {
    const { d, m } = writeRange(values, view, at, 15);
    values.forEach((x, i) => orNibble(view, at + 4, i, level(x - m, d, 0, 15)));
  },
  Q5_0: (values, view, at) => {
    const d = writeHalf(view, at, -extreme(values) / 16);
    values.forEach((x, i) => orFiveBits(view, at + 2, at + 6, i, level(x, d, -16, 15) + 16));
  },
  Q5_1: (values, view, at) => {
    const { d, m } = writeRange(values, view, at, 31);
    values.forEach((x, i) => orFiveBits(view, at + 4, at + 8, i, level(x - m, d, 0, 31)));
  },
  Q8_0: (values, view, at) => {
    const d = writeHalf(view, at, Math.abs(extreme(values)) / 127);
    values.forEach((x, i) => view.setInt8(at + 2 + i, level(x, d, -127, 127)));
  },

  Q2_K: (values, view, at) => {
    const { d, dmin, subs } = minScales(values, 16, 3, 15);
    writeHalf(view, at + 80, d);
    writeHalf(view, at + 82, dmin);
    subs.forEach(({ sc, m }, j) => view.setUint8(at + j, sc | (m << 4)));
    values.forEach((x, i) => {
      const { step = 0, min = 0 } = subs[i >> 4] ?? {};
      orTwoBits(view, at + 16, i, level(x + min, step, 0, 3));
    });
  },
  Q3_K: (values, view, at) => {
    const { d, scales } = signedScales(values, 16, 4, 31);
    writeHalf(view, at + 108, d);
    scales.forEach((sc, j) => {
      orBits(view, at + 96 + (j & 7), (sc + 32) & 15, j < 8 ? 0 : 4);
      orBits(view, at + 104 + (j & 3), (sc + 32) >> 4, 2 * (j >> 2));
    });
    values.forEach((x, i) => {
      const q = level(x, d * (scales[i >> 4] ?? 0), -4, 3) + 4;
      orTwoBits(view, at + 32, i, q & 3);
      orBits(view, at + (i & 31), q >> 2, i >> 5);
    });
  },
  Q4_K: (values, view, at) => {
    const subs = writeMinScales(values, view, at, 15);
    values.forEach((x, i) => {
      const { step = 0, min = 0 } = subs[i >> 5] ?? {};
      orPairedNibble(view, at + 16, i, level(x + min, step, 0, 15));
    });
  },
  Q5_K: (values, view, at) => {
    const subs = writeMinScales(values, view, at, 31);
    values.forEach((x, i) => {
      const { step = 0, min = 0 } = subs[i >> 5] ?? {};
      const q = level(x + min, step, 0, 31);
      orPairedNibble(view, at + 48, i, q & 15);
      orBits(view, at + 16 + (i & 31), q >> 4, i >> 5);
    });
  },
  Q6_K: (values, view, at) => {
    const { d, scales } = signedScales(values, 16, 32, 127);
    writeHalf(view, at + 208, d);
    scales.forEach((sc, j) => view.setInt8(at + 192 + j, sc));
    values.forEach((x, i) => {
      const q = level(x, d * (scales[i >> 4] ?? 0), -32, 31) + 32;
      const half = i >> 7;
      const group = (i >> 5) & 3;
      orBits(view, at + 64 * half + (i & 63), q & 15, 4 * (group >> 1));
      orBits(view, at + 128 + 32 * half + (i & 31), q >> 4, 2 * group);
    });
  },

  IQ4_NL: (values, view, at) => {
    const d = writeHalf(view, at, -extreme(values) / 127);
    values.forEach((x, i) => orNibble(view, at + 2, i, nearest(iq4Levels, x, d)));
  },
  IQ4_XS: (values, view, at) => {
    const { d, scales } = signedScales(values, 32, 127, 31);
    writeHalf(view, at, d);
    let high = 0;
    scales.forEach((sc, g) => {
      orBits(view, at + 4 + (g >> 1), (sc + 32) & 15, 4 * (g & 1));
      high |= ((sc + 32) >> 4) << (2 * g);
    });
    view.setUint16(at + 2, high, true);
    values.forEach((x, i) => {
      const q = nearest(iq4Levels, x, d * (scales[i >> 5] ?? 0));
      orNibble(view, at + 8 + 16 * (i >> 5), i & 31, q);
    });
  },
  MXFP4: (values, view, at) => {
    const largest = Math.abs(extreme(values));
    const exponent = largest === 0 ? -128 : Math.ceil(Math.log2(largest / 12));
    const e = Math.min(254, Math.max(0, exponent + 128));
    view.setUint8(at, e);
    values.forEach((x, i) => orNibble(view, at + 1, i, nearest(e2m1Doubled, x, 2 ** (e - 128))));
  },
};

/** The whole number of steps nearest to x. */
function level(x: number, step: number, low: number, high: number): number {
  if (step === 0) return Math.max(low, 0);
  return Math.min(high, Math.max(low, Math.round(x / step)));
}

/** The index of the level that, times the scale, is nearest to x. */
function nearest(levels: Int8Array, x: number, scale: number): number {
  let best = 0;
  const distance = (i: number) => Math.abs((levels[i] ?? 0) * scale - x);
  for (let i = 1; i < levels.length; i++) if (distance(i) < distance(best)) best = i;
  return best;
}

/** The value that is farthest from 0. */
function extreme(values: Float32Array): number {
  return values.reduce((best, x) => (Math.abs(x) > Math.abs(best) ? x : best), 0);
}

/**
 * Writes a half and returns what it holds, so that levels are chosen for the scale that will be
 * read.
 */
function writeHalf(view: DataView, at: number, value: number): number {
  view.setUint16(at, floatToHalf(value), true);
  return halfToFloat(view.getUint16(at, true));
}

/** Scale and offset for values from the least to the largest in `steps` steps. */
function writeRange(values: Float32Array, view: DataView, at: number, steps: number) {
  const least = Math.min(...values);
  const d = writeHalf(view, at, (Math.max(...values) - least) / steps);
  return { d, m: writeHalf(view, at + 2, least) };
}

/** Sub-blocks with a scale and a min each, as integers up to `limit` times d and dmin. */
function minScales(values: Float32Array, subLength: number, steps: number, limit: number) {
  const ranges: { step: number; min: number }[] = [];
  for (let i = 0; i < values.length; i += subLength) {
    const sub = values.subarray(i, i + subLength);
    const min = Math.max(0, -Math.min(...sub));
    ranges.push({ step: Math.max(0, Math.max(...sub) + min) / steps, min });
  }
  const d = roundHalf(Math.max(...ranges.map(({ step }) => step)) / limit);
  const dmin = roundHalf(Math.max(...ranges.map(({ min }) => min)) / limit);
  const subs = ranges.map((range) => {
    const sc = level(range.step, d, 0, limit);
    const m = level(range.min, dmin, 0, limit);
    return { sc, m, step: d * sc, min: dmin * m };
  });
  return { d, dmin, subs };
}

/** The head of Q4_K and Q5_K: d, dmin and eight six-bit pairs in 12 bytes. */
function writeMinScales(values: Float32Array, view: DataView, at: number, steps: number) {
  const { d, dmin, subs } = minScales(values, 32, steps, 63);
  writeHalf(view, at, d);
  writeHalf(view, at + 2, dmin);
  subs.forEach(({ sc, m }, j) => {
    if (j < 4) {
      orBits(view, at + 4 + j, sc, 0);
      orBits(view, at + 8 + j, m, 0);
    } else {
      orBits(view, at + 8 + j, (sc & 15) | ((m & 15) << 4), 0);
      orBits(view, at + j, sc >> 4, 6);
      orBits(view, at + 4 + j, m >> 4, 6);
    }
  });
  return subs;
}

/** Sub-blocks with a signed scale each; the value farthest from 0 becomes level -`steps`. */
function signedScales(values: Float32Array, subLength: number, steps: number, limit: number) {
  const wanted: number[] = [];
  for (let i = 0; i < values.length; i += subLength) {
    wanted.push(-extreme(values.subarray(i, i + subLength)) / steps);
  }
  const d = roundHalf(Math.max(...wanted.map(Math.abs)) / limit);
  return { d, scales: wanted.map((scale) => level(scale, d, -limit, limit)) };
}

function roundHalf(value: number): number {
  return halfToFloat(floatToHalf(value));
}

function orBits(view: DataView, at: number, bits: number, shift: number): void {
  view.setUint8(at, view.getUint8(at) | (bits << shift));
}

/** Value i of 32: low nibbles first. */
function orNibble(view: DataView, qs: number, i: number, q: number): void {
  orBits(view, qs + (i & 15), q, i < 16 ? 0 : 4);
}

function orFiveBits(view: DataView, qh: number, qs: number, i: number, q: number): void {
  orNibble(view, qs, i, q & 15);
  orBits(view, qh + (i >> 3), q >> 4, i & 7);
}

function orTwoBits(view: DataView, qs: number, i: number, q: number): void {
  orBits(view, qs + 32 * (i >> 7) + (i & 31), q, 2 * ((i >> 5) & 3));
}

function orPairedNibble(view: DataView, qs: number, i: number, q: number): void {
  orBits(view, qs + 32 * (i >> 6) + (i & 31), q, 4 * ((i >> 5) & 1));
}
