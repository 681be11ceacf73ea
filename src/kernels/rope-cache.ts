/**
 * Rotary embedding of queries and keys, with their norms where a model has these, and the write of
 * keys and values into the paged cache.
 */
import { invariant } from "../errors.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";
import { teamOf } from "./reduction.ts";

export const ropeCacheKernel = defineKernel("rope_cache", {
  query: reads,
  rotated: writes,
  key: reads,
  value: reads,
  keyCache: writes,
  valueCache: writes,
  frequencies: reads,
  queryNorm: reads,
  keyNorm: reads,
  step: reads,
  heads: u32,
  kvHeads: u32,
  headWidth: u32,
  queryStride: u32,
  rotary: u32,
  magnitude: f32,
  epsilon: f32,
});

export interface RopeCache {
  /** [rowCapacity, heads, queryStride] */
  readonly query: BufferSlice;
  /** Values from one query head to the next; `headWidth` by default. */
  readonly queryStride?: number;
  /** [rowCapacity, heads, headWidth], written; `query` itself by default. */
  readonly rotated?: BufferSlice;
  /** [rowCapacity, kvHeads, headWidth] */
  readonly key: BufferSlice;
  readonly value: BufferSlice;
  /** [headWidth]: RMS normalization of each query head, before its rotation. */
  readonly queryNorm?: Vector | undefined;
  /** The same for keys. */
  readonly keyNorm?: Vector | undefined;
  /** Of both norms. */
  readonly epsilon?: number;
  /** [blocks, kvHeads, blockTokens, headWidth] halves. */
  readonly keyCache: BufferSlice;
  readonly valueCache: BufferSlice;
  /** [rotary / 2] 64-bit fractions of a turn (`rotaryTurns`). */
  readonly frequencies: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  /** Leading values of a head that are rotated. */
  readonly rotary: number;
  /** Which values form a pair: neighbours, or i and i + rotary / 2. */
  readonly pairs: "neighbours" | "halves";
  /** Factor on the rotated values, from YaRN. */
  readonly magnitude?: number;
}

/** Invocations that rotate a head, where a team is no larger. */
const workgroupMin = 32;

export function ropeCache(context: KernelContext, rope: RopeCache): void {
  const { rowCapacity, pairs, magnitude = 1, queryNorm, keyNorm, epsilon = 0, ...buffers } = rope;
  const { heads, kvHeads, headWidth, rotary, query } = rope;
  const { queryStride = headWidth, rotated = query } = rope;
  invariant(
    headWidth % 2 === 0 && rotary % 2 === 0 && rotary <= headWidth,
    `rope: ${rotary} of ${headWidth}`,
  );
  for (const norm of [queryNorm, keyNorm])
    invariant(norm === undefined || norm.length === headWidth, `rope: ${norm?.name}`);
  invariant(rotated !== query || queryStride === headWidth, "rope: queries cannot stay in place");
  const { reduction, lanes, subgroupSize } = teamOf(context);
  launch(context, ropeCacheKernel, {
    shader: `rope_cache.${reduction}`,
    constants: [
      Math.max(lanes, workgroupMin),
      ...[pairs === "neighbours", queryNorm !== undefined, keyNorm !== undefined].map(Number),
    ],
    subgroupSize,
    parameters: {
      ...buffers,
      rotated,
      queryStride,
      magnitude,
      epsilon,
      ...(queryNorm && { queryNorm: queryNorm.data }),
      ...(keyNorm && { keyNorm: keyNorm.data }),
    },
    groups: [rowCapacity, heads + 2 * kvHeads],
    label: "rope and cache",
  });
}

/**
 * Frequencies as the kernel takes them: turns a position, times 2^64, low word first.
 * `radians`: the angle a position of each pair.
 */
export function rotaryTurns(radians: ArrayLike<number>): Uint8Array {
  const turns = new BigUint64Array(radians.length);
  for (let i = 0; i < radians.length; i++) {
    const turn = (radians[i] ?? 0) / (2 * Math.PI);
    // 53 bits of the fraction, shifted to 64.
    turns[i] = BigInt.asUintN(64, BigInt(Math.round((turn - Math.floor(turn)) * 2 ** 53)) << 11n);
  }
  return new Uint8Array(turns.buffer);
}
