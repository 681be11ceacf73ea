/** Rotary embedding with the write to the cache. */
import { hostBytes, type BufferSlice } from "../../vulkan/buffer.ts";
import { parseKvTypes, isScrambled, halfTypes, type KvType, type KvTypeName } from "../kv-type.ts";
import { ropeCache, rotaryTurns } from "../rope-cache.ts";
import { blockTokens } from "../step.ts";
import { reductions, relativeError, type Force, type VerifyCase } from "./case.ts";
import { decode, encode, scramble, take, tileBytes } from "./kv-codec.ts";
import { Random } from "./random.ts";
import { rmsNormReference, ropeReference } from "./reference.ts";
import { uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

/** Positions far apart, in two sequences whose cache blocks are interleaved and out of order. */
const ropeRows = [
  { token: 0, position: 0, sequence: 0 },
  { token: 0, position: 32, sequence: 1 },
  { token: 0, position: 33, sequence: 1 },
  { token: 0, position: 95, sequence: 0 },
];
const ropeTables = [
  [5, 0, 3],
  [4, 1, 2],
];

interface RopeInput {
  readonly pairs: "neighbours" | "halves";
  readonly headWidth: number;
  readonly rotary: number;
  /** Factor on the frequencies. */
  readonly far?: number;
  /** `headWidth` by default. */
  readonly valueWidth?: number;
  /** Normalize queries, keys and values, and sharpen queries with their position. */
  readonly extras?: true;
  /** Queries have their gates between them. */
  readonly gated?: true;
  readonly kv?: KvTypeName;
}

const ropeInputs: readonly RopeInput[] = [
  { pairs: "neighbours", headWidth: 64, rotary: 64 },
  { pairs: "halves", headWidth: 128, rotary: 128, valueWidth: 64 },
  { pairs: "halves", headWidth: 80, rotary: 32, far: 1000 },
  { pairs: "neighbours", headWidth: 128, rotary: 64 },
  { pairs: "neighbours", headWidth: 64, rotary: 0 },
  { pairs: "halves", headWidth: 512, rotary: 128, extras: true },
  { pairs: "neighbours", headWidth: 96, rotary: 96, extras: true },
  { pairs: "halves", headWidth: 64, rotary: 32, extras: true, gated: true },
  { pairs: "neighbours", headWidth: 64, rotary: 64, kv: "q8_0" },
  { pairs: "halves", headWidth: 80, rotary: 32, kv: "tq3" },
  { pairs: "halves", headWidth: 512, rotary: 128, extras: true, kv: "tq4" },
  { pairs: "halves", headWidth: 96, rotary: 96, extras: true, gated: true, kv: "tq3,tq4" },
  { pairs: "halves", headWidth: 256, rotary: 64, valueWidth: 80, kv: "q8_0,tq4" },
  { pairs: "halves", headWidth: 128, rotary: 128, valueWidth: 64, kv: "tq4,f16" },
];

const [heads, kvHeads] = [3, 2];
const epsilon = 0.1;
const temperature = { scale: 0.5, span: 10 };

function ropeCase(input: RopeInput, force: Force, variant: string): Omit<VerifyCase, "needs"> {
  const { pairs, headWidth, rotary, far = 1, valueWidth = headWidth, extras, gated } = input;
  const details = [
    `head width ${headWidth}`,
    `${rotary} rotated`,
    ...(far === 1 ? [] : [`frequencies times ${far}`]),
    ...(valueWidth === headWidth ? [] : [`values of ${valueWidth}`]),
    ...(extras === undefined ? [] : ["norms", "temperature"]),
    ...(gated === undefined ? [] : ["gated queries"]),
    ...(input.kv === undefined ? [] : [input.kv]),
  ];
  return {
    kernel: "rope_cache",
    variant: `${pairs} ${variant}`,
    name: details.join(", "),
    // A half of twice the root mean square or more may be rounded the other way.
    bound: 2.5e-3,
    run: (bench) => runRope(bench, input, force),
  };
}

function runRope(bench: Workbench, input: RopeInput, force: Force): number {
  const { pairs, headWidth, rotary, far = 1, valueWidth = headWidth, extras, gated } = input;
  const random = new Random(headWidth + rotary);
  const radians = Array.from({ length: rotary / 2 }, (_, i) => far * 10_000 ** ((-2 * i) / rotary));
  const query = random.floats(ropeRows.length * heads * headWidth);
  const key = random.floats(ropeRows.length * kvHeads * headWidth);
  const value = random.floats(ropeRows.length * kvHeads * valueWidth);
  const [queryNorm, keyNorm] = [random.floats(headWidth), random.floats(headWidth)];
  const source = bench.upload(gated ? spread(query, headWidth) : query);
  const kvTypes = parseKvTypes(input.kv ?? "f16") ?? halfTypes;
  const room = (type: KvType, width: number) =>
    bench.floats((6 * kvHeads * tileBytes(type, width)) / 4);
  const keyCache = room(kvTypes.key, headWidth);
  const valueCache = room(kvTypes.value, valueWidth);
  const norms = {
    queryNorm: bench.vector("query norm", queryNorm),
    keyNorm: bench.vector("key norm", keyNorm),
    normValue: true,
    epsilon,
  };
  bench.run((context) =>
    ropeCache(
      { ...context, force },
      {
        query: source,
        queryStride: gated ? 2 * headWidth : headWidth,
        key: bench.upload(key),
        value: bench.upload(value),
        keyCache,
        valueCache,
        kvTypes,
        ...(rotary === 0 ? {} : { frequencies: bench.upload(rotaryTurns(radians)) }),
        step: uploadStep(bench, ropeRows, { tables: ropeTables }),
        rowCapacity: ropeRows.length,
        heads,
        kvHeads,
        headWidth,
        valueWidth,
        rotary,
        pairs,
        ...(extras && { ...norms, temperature }),
      },
    ),
  );
  const normed = (heads_: Float32Array, weight: Float32Array) =>
    extras ? rmsNormReference(heads_, weight, epsilon) : heads_;
  const rotate = (heads_: ArrayLike<number>, count: number) =>
    rotateRows(heads_, count, headWidth, radians, pairs);
  const rotated = rotate(normed(query, queryNorm), heads).map((x, i) =>
    extras ? x * sharpness(Math.floor(i / (heads * headWidth))) : x,
  );
  const queries = isScrambled(kvTypes.key) ? eachHead(rotated, headWidth, scramble) : rotated;
  const stride = gated ? 2 * headWidth : headWidth;
  const read = bench
    .read(source, ropeRows.length * heads * stride)
    .filter((_, i) => i % stride < headWidth);
  const values = normed(value, new Float32Array(valueWidth).fill(1));
  return Math.max(
    // Queries are floats and must be far closer than the halves in the cache.
    relativeError(read, queries) * 1000,
    cacheError(keyCache, kvTypes.key, headWidth, rotate(normed(key, keyNorm), kvHeads)),
    cacheError(valueCache, kvTypes.value, valueWidth, Array.from(values)),
  );
}

/** Puts a gate that nobody must read behind each head. */
function spread(heads_: Float32Array, headWidth: number): Float32Array {
  return Float32Array.from({ length: 2 * heads_.length }, (_unused, i) => {
    const within = i % (2 * headWidth);
    const head = Math.floor(i / (2 * headWidth));
    return within < headWidth ? (heads_[head * headWidth + within] ?? 0) : Number.NaN;
  });
}

function rotateRows(
  source: ArrayLike<number>,
  headCount: number,
  headWidth: number,
  radians: readonly number[],
  pairs: RopeInput["pairs"],
): number[] {
  const values = Array.from(source);
  return ropeRows.flatMap(({ position }, row) =>
    Array.from({ length: headCount }, (_unused, head) => {
      const start = (row * headCount + head) * headWidth;
      return ropeReference(values.slice(start, start + headWidth), position, radians, pairs);
    }).flat(),
  );
}

function sharpness(row: number): number {
  const { position = 0 } = ropeRows[row] ?? {};
  return 1 + temperature.scale * Math.log(Math.floor(position / temperature.span) + 1);
}

function eachHead(
  values: readonly number[],
  width: number,
  change: (head: readonly number[]) => readonly number[],
): number[] {
  return Array.from({ length: values.length / width }, (_unused, i) =>
    change(values.slice(i * width, (i + 1) * width)),
  ).flat();
}

/** How far what the rows of `ropeRows` left in a cache is from what these heads are in one. */
function cacheError(
  cache: BufferSlice,
  type: KvType,
  width: number,
  heads_: readonly number[],
): number {
  const bytes = hostBytes(cache);
  const byteSize = tileBytes(type, width);
  const found = ropeRows.flatMap(({ position, sequence }) => {
    const block = ropeTables[sequence]?.[Math.floor(position / blockTokens)] ?? 0;
    return Array.from({ length: kvHeads }, (_unused, head) => {
      const tile = bytes.subarray((block * kvHeads + head) * byteSize).subarray(0, byteSize);
      return decode(type, take(type, tile, position % blockTokens, width));
    }).flat();
  });
  const wanted = eachHead(heads_, width, (head) => decode(type, encode(type, head)));
  return relativeError(found, wanted);
}

export const ropeCases: readonly VerifyCase[] = reductions.flatMap(({ variant, force, ...rest }) =>
  ropeInputs.map((input) => ({ ...ropeCase(input, force, variant), ...rest })),
);
