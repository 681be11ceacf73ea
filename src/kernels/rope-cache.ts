/**
 * Rotary embedding of queries and keys, with their norms where a model has these, and the write of
 * keys and values into the paged cache.
 */
import { invariant } from "../errors.ts";
import { floatBits } from "../math.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, updates, writes, type KernelContext } from "./kernel.ts";
import { halfTypes, kvConstants, type KvTypes } from "./kv-type.ts";
import { teamOf } from "./reduction.ts";

export const ropeCacheKernel = defineKernel("rope_cache", {
  query: updates,
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
  valueWidth: u32,
  queryStride: u32,
  temperature: f32,
  temperatureSpan: u32,
});

/** How positions turn the heads of queries and keys. */
export interface Rotation {
  /** [rotary / 2] 64-bit fractions of a turn (`rotaryTurns`); may be left out if `rotary` is 0. */
  readonly frequencies?: BufferSlice | undefined;
  /** Leading values of a head that are rotated; 0 hides positions from the layer. */
  readonly rotary: number;
  /** Which values form a pair: neighbours, or i and i + rotary / 2. */
  readonly pairs: "neighbours" | "halves";
  /** Factor on the rotated values, from YaRN. */
  readonly magnitude?: number;
}

/** Heads as their products left them, and what happens to them before attention. */
export interface RotatedHeads extends Rotation {
  /** [rowCapacity, heads, …], of which the first headWidth values of each head count. */
  readonly query: BufferSlice;
  /**
   * [rowCapacity, kvHeads, headWidth]; nothing is stored without it: the layer reads the cache of
   * another.
   */
  readonly key: BufferSlice | undefined;
  /** [rowCapacity, kvHeads, valueWidth]; may be `key`, which is stored as it was. */
  readonly value: BufferSlice | undefined;
  /** [headWidth]: RMS normalization of each query head, before its rotation. */
  readonly queryNorm?: Vector | undefined;
  /** The same for keys. */
  readonly keyNorm?: Vector | undefined;
  /** RMS normalization of each value head, without weights. */
  readonly normValue?: boolean;
  /** Of all norms. */
  readonly epsilon?: number;
  readonly temperature?: Temperature | undefined;
}

/** Queries are rotated in place, and scrambled if keys are. */
export interface RopeCache extends RotatedHeads {
  /** Values from one query head to the next; `headWidth` by default. */
  readonly queryStride?: number;
  /** [blocks, kvHeads, blockTokens, headWidth] */
  readonly keyCache: BufferSlice;
  /** [blocks, kvHeads, blockTokens, valueWidth] */
  readonly valueCache: BufferSlice;
  /** What the caches hold; halves by default. */
  readonly kvTypes?: KvTypes | undefined;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  /** `headWidth` by default. */
  readonly valueWidth?: number | undefined;
}

/** A query at position p grows by 1 + scale · ln(⌊p / span⌋ + 1). */
export interface Temperature {
  readonly scale: number;
  readonly span: number;
}

export function ropeCache(context: KernelContext, rope: RopeCache): void {
  const { query, queryStride, rowCapacity } = checked(rope);
  const { key, value = key, keyCache, valueCache, frequencies, step, temperature } = rope;
  const { queryNorm, keyNorm, heads, kvHeads, headWidth, valueWidth = headWidth } = rope;
  const { kvTypes = halfTypes } = rope;
  const { reduction, lanes, subgroupSize } = teamOf(context);
  launch(context, ropeCacheKernel, {
    shader: `rope_cache.${reduction}`,
    // Like a team of `attention`, which may do this too and must round like it.
    constants: [lanes, ...rotationConstants(rope), ...kvConstants(kvTypes)],
    subgroupSize,
    parameters: {
      query,
      ...(key && value && { key, value, keyCache, valueCache }),
      ...(frequencies && { frequencies }),
      ...(queryNorm && { queryNorm: queryNorm.data }),
      ...(keyNorm && { keyNorm: keyNorm.data }),
      step,
      heads,
      kvHeads,
      headWidth,
      valueWidth,
      queryStride,
      temperature: temperature?.scale ?? 0,
      temperatureSpan: temperature?.span ?? 1,
    },
    groups: [rowCapacity, heads + (key === undefined ? 0 : 2 * kvHeads)],
    label: "rope and cache",
  });
}

/** The specialization constants that shaders/include/rope.glsl asks for. */
export function rotationConstants(rope: Omit<RotatedHeads, "query" | "key" | "value">): number[] {
  const { pairs, queryNorm, keyNorm, normValue = false, rotary, magnitude = 1, epsilon = 0 } = rope;
  const flags = [pairs === "neighbours", queryNorm !== undefined, keyNorm !== undefined, normValue];
  return [...flags.map(Number), rotary, floatBits(magnitude), floatBits(epsilon)];
}

function checked(rope: RopeCache): RopeCache & { readonly queryStride: number } {
  const { headWidth, valueWidth = headWidth, queryStride = headWidth, rotary } = rope;
  const { queryNorm, keyNorm } = rope;
  invariant(
    headWidth % 4 === 0 && rotary % 2 === 0 && rotary <= headWidth,
    `rope: ${rotary} of ${headWidth}`,
  );
  invariant(valueWidth % 4 === 0, `rope: values of ${valueWidth}`);
  invariant(Math.max(headWidth, valueWidth) <= 512, `rope: heads of ${headWidth}, ${valueWidth}`);
  for (const norm of [queryNorm, keyNorm])
    invariant(norm === undefined || norm.length === headWidth, `rope: ${norm?.name}`);
  return { ...rope, queryStride };
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
