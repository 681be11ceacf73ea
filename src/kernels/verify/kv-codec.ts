/**
 * Keys and values as the cache keeps them, in plain loops: what shaders/include/cache_codes.glsl,
 * cache_encode.glsl and scramble.glsl do.
 */
import { ceilDiv } from "../../math.ts";
import { floatToHalf, halfToFloat } from "../../tensor/half.ts";
import { isScrambled, kvHeadBytes, type KvType } from "../kv-type.ts";
import { blockTokens } from "../step.ts";

export interface StoredHead {
  /** One a value: a half's bits, a signed byte, or the number of a level. */
  readonly codes: readonly number[];
  /** Bits of halves: one of 32 values, one of all, or none. */
  readonly scales: readonly number[];
}

const chunkValues = 32;

/** Of levels t · (linear + cubic · t²), where t is the code less that of the middle. */
const noiseLevels = {
  tq4: { count: 16, linear: 0.246875, cubic: 0.002025 },
  tq3: { count: 8, linear: 0.4716317, cubic: 0.011577 },
} as const;

/** What a code of a value with root mean square 1 stands for. */
export function noiseLevel(type: "tq4" | "tq3", code: number): number {
  const { count, linear, cubic } = noiseLevels[type];
  const t = code - (count - 1) / 2;
  return t * (linear + cubic * t * t);
}

/** The code whose level is nearest. */
export function noiseCode(type: "tq4" | "tq3", value: number): number {
  let best = 0;
  for (let code = 1; code < noiseLevels[type].count; code++) {
    if (value > (noiseLevel(type, code - 1) + noiseLevel(type, code)) / 2) best = code;
  }
  return best;
}

/** Signs of four neighbouring values: -1 or 1. */
function signsOf(quad: number): number[] {
  const state = (Math.imul(quad, 747796405) + 2891336453) >>> 0;
  const word = Math.imul((state >>> ((state >>> 28) + 4)) ^ state, 277803737) >>> 0;
  return [31, 30, 29, 28].map((bit) => ((word >>> bit) & 1 ? -1 : 1));
}

function withSigns(head: ArrayLike<number>): number[] {
  return Array.from(head, (value, i) => value * (signsOf(Math.floor(i / 4))[i % 4] ?? 1));
}

/** The symmetric part of the rotation: its own inverse. */
function transform(head: readonly number[]): number[] {
  const width = head.length;
  const across = width & -width;
  const blocks = width / across;
  const result = [...head];
  for (let stride = 1; stride < across; stride *= 2) {
    for (let i = 0; i < width; i++) {
      if ((i & stride) !== 0) continue;
      const [a = 0, b = 0] = [result[i], result[i + stride]];
      result[i] = a + b;
      result[i + stride] = a - b;
    }
  }
  for (let column = 0; column < across; column++) {
    let sum = 0;
    for (let i = column; i < width; i += across) sum += result[i] ?? 0;
    if (blocks === 1) continue;
    for (let i = column; i < width; i += across) result[i] = (result[i] ?? 0) - (2 * sum) / blocks;
  }
  return result.map((value) => value / Math.sqrt(across));
}

export function scramble(head: ArrayLike<number>): number[] {
  return transform(withSigns(head));
}

export function unscramble(head: readonly number[]): number[] {
  return withSigns(transform(head));
}

/** Scrambles first, where the type does. */
export function encode(type: KvType, head: ArrayLike<number>): StoredHead {
  if (type === "f16") return { codes: Array.from(head, floatToHalf), scales: [] };
  if (type === "q8_0") return encodeBytes(head);
  const values = scramble(head);
  const squares = values.reduce((sum, value) => sum + value * value, 0);
  const inverse = squares > 0 ? 1 / Math.sqrt(squares / values.length) : 0;
  const codes = values.map((value) => noiseCode(type, value * inverse));
  const match = codes.reduce((sum, code, i) => sum + (values[i] ?? 0) * noiseLevel(type, code), 0);
  return { codes, scales: [floatToHalf(squares > 0 ? squares / match : 0)] };
}

function encodeBytes(head: ArrayLike<number>): StoredHead {
  const scales = Array.from({ length: ceilDiv(head.length, chunkValues) }, (_unused, chunk) => {
    const values = Array.from(head).slice(chunk * chunkValues, (chunk + 1) * chunkValues);
    return Math.max(...values.map(Math.abs)) / 127;
  });
  const codes = Array.from(head, (value, i) => {
    const scale = scales[Math.floor(i / chunkValues)] ?? 0;
    return scale === 0 ? 0 : Math.round(value / scale);
  });
  return { codes, scales: scales.map(floatToHalf) };
}

/** What attention sees; scrambled heads stay so. */
export function decode(type: KvType, { codes, scales }: StoredHead): number[] {
  if (type === "f16") return codes.map(halfToFloat);
  return codes.map((code, i) => {
    const level = type === "q8_0" ? code : noiseLevel(type, code);
    const scale = scales[type === "q8_0" ? Math.floor(i / chunkValues) : 0] ?? 0;
    return level * halfToFloat(scale);
  });
}

/** A head after it went through the cache. */
export function throughCache(type: KvType, head: ArrayLike<number>): number[] {
  const seen = decode(type, encode(type, head));
  return isScrambled(type) ? unscramble(seen) : seen;
}

export function tileBytes(type: KvType, width: number): number {
  return blockTokens * kvHeadBytes(type, width);
}

/** Writes the head of a position into its tile. */
export function place(
  type: KvType,
  tile: Uint8Array,
  offset: number,
  { codes, scales }: StoredHead,
): void {
  const view = new DataView(tile.buffer, tile.byteOffset, tile.byteLength);
  codes.forEach((code, i) => {
    for (const { bit, count, from } of fieldsOf(type, codes.length, offset, i)) {
      const mask = (2 ** count - 1) * 2 ** (bit % 8);
      const at = Math.floor(bit / 8);
      if (count === 16) view.setUint16(at, code, true);
      else tile[at] = ((tile[at] ?? 0) & ~mask) | (((code >> from) << (bit % 8)) & mask);
    }
  });
  scales.forEach((scale, i) =>
    view.setUint16(scaleByte(type, codes.length, offset, i), scale, true),
  );
}

/** Reads the head of a position from its tile. */
export function take(type: KvType, tile: Uint8Array, offset: number, width: number): StoredHead {
  const view = new DataView(tile.buffer, tile.byteOffset, tile.byteLength);
  const codes = Array.from({ length: width }, (_unused, i) =>
    fieldsOf(type, width, offset, i).reduce((code, { bit, count, from }) => {
      const at = Math.floor(bit / 8);
      if (count === 16) return view.getUint16(at, true);
      if (count === 8) return view.getInt8(at);
      return code | (((view.getUint8(at) >> (bit % 8)) & (2 ** count - 1)) << from);
    }, 0),
  );
  const scaleCount = (kvHeadBytes(type, width) - codeBytes(type, width)) / 2;
  const scales = Array.from({ length: scaleCount }, (_unused, i) =>
    view.getUint16(scaleByte(type, width, offset, i), true),
  );
  return { codes, scales };
}

interface BitField {
  /** Where it begins in a tile, and how many bits it has. */
  readonly bit: number;
  readonly count: number;
  /** Which bit of the code is its first. */
  readonly from: number;
}

function fieldsOf(type: KvType, width: number, offset: number, i: number): BitField[] {
  const padded = ceilDiv(width, chunkValues) * chunkValues;
  const at = offset * padded + i;
  if (type === "f16") return [{ bit: 16 * (offset * width + i), count: 16, from: 0 }];
  if (type === "q8_0") return [{ bit: 8 * at, count: 8, from: 0 }];
  if (type === "tq4") return [{ bit: 4 * at, count: 4, from: 0 }];
  return [
    { bit: 2 * at, count: 2, from: 0 },
    { bit: 2 * blockTokens * padded + at, count: 1, from: 2 },
  ];
}

/** Of a position, without its scales. */
function codeBytes(type: KvType, width: number): number {
  if (type === "f16") return 2 * width;
  const bits = { q8_0: 8, tq4: 4, tq3: 3 }[type];
  return (ceilDiv(width, chunkValues) * chunkValues * bits) / 8;
}

function scaleByte(type: KvType, width: number, offset: number, index: number): number {
  const codes = codeBytes(type, width);
  return blockTokens * codes + offset * (kvHeadBytes(type, width) - codes) + 2 * index;
}
