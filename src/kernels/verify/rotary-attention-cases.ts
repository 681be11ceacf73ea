/** Attention of one row with norms, rotation and the write to the cache in the same dispatch. */
import { hostBytes, type BufferSlice } from "../../vulkan/buffer.ts";
import { attentionPartBytes } from "../attention.ts";
import type { KvTypeName } from "../kv-type.ts";
import { rotaryAttention } from "../rotary-attention.ts";
import { rotaryTurns } from "../rope-cache.ts";
import { Cache, kvHeads, readers, typesOf } from "./attention-cases.ts";
import { reductions, relativeError, type Force, type VerifyCase } from "./case.ts";
import { readCodes } from "./codes.ts";
import { throughCache } from "./kv-codec.ts";
import { Random } from "./random.ts";
import { attentionReference, rmsNormReference, ropeReference } from "./reference.ts";
import { uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

interface RotaryInput {
  readonly headWidth: number;
  readonly group: number;
  readonly position: number;
  readonly splits: number;
  readonly pairs: "neighbours" | "halves";
  readonly rotary: number;
  readonly teams?: number;
  readonly window?: number;
  readonly cap?: number;
  readonly norms?: boolean;
  readonly gated?: boolean;
  readonly quantizes?: boolean;
  /** The layer reads the cache of another. */
  readonly borrows?: boolean;
  readonly kv?: KvTypeName;
}

const inputs: readonly RotaryInput[] = [
  { headWidth: 64, group: 2, position: 0, splits: 1, pairs: "neighbours", rotary: 64 },
  { headWidth: 128, group: 4, position: 128, splits: 2, pairs: "neighbours", rotary: 128 },
  {
    ...{ headWidth: 256, group: 8, position: 70, splits: 1, pairs: "halves", rotary: 64 },
    ...{ norms: true, gated: true, quantizes: true },
  },
  {
    ...{ headWidth: 64, group: 3, position: 200, splits: 4, pairs: "halves", rotary: 64 },
    ...{ norms: true, window: 33, cap: 2 },
  },
  { headWidth: 96, group: 1, position: 64, splits: 1, pairs: "halves", rotary: 0, window: 1 },
  {
    ...{ headWidth: 64, group: 2, position: 100, splits: 2, pairs: "halves", rotary: 32 },
    borrows: true,
  },
  {
    ...{ headWidth: 128, group: 4, position: 128, splits: 2, pairs: "neighbours", rotary: 128 },
    kv: "tq4",
  },
  {
    ...{ headWidth: 80, group: 3, position: 200, splits: 4, pairs: "halves", rotary: 32 },
    ...{ norms: true, window: 33, cap: 2, kv: "tq4,q8_0" },
  },
];

const subgroupInputs: readonly RotaryInput[] = [
  {
    ...{ headWidth: 128, group: 6, position: 256, splits: 3, pairs: "neighbours", rotary: 128 },
    ...{ teams: 4, norms: true },
  },
  {
    ...{ headWidth: 128, group: 6, position: 256, splits: 3, pairs: "neighbours", rotary: 128 },
    ...{ teams: 4, norms: true, kv: "tq4" },
  },
  {
    ...{ headWidth: 64, group: 2, position: 0, splits: 1, pairs: "neighbours", rotary: 64 },
    kv: "q8_0",
  },
  {
    ...{ headWidth: 256, group: 8, position: 70, splits: 1, pairs: "halves", rotary: 64 },
    ...{ norms: true, gated: true, quantizes: true, kv: "tq3" },
  },
  {
    ...{ headWidth: 96, group: 1, position: 95, splits: 1, pairs: "halves", rotary: 0, window: 1 },
    kv: "f16,tq3",
  },
  {
    ...{ headWidth: 512, group: 2, position: 100, splits: 2, pairs: "halves", rotary: 128 },
    ...{ borrows: true, kv: "tq3,f16" },
  },
];

const [scale, epsilon, magnitude] = [0.3, 0.1, 1.25];

/** What a layer's products and its cache have, and RoPE's frequencies. */
function dataOf(input: RotaryInput) {
  const { headWidth, group, position, rotary, gated = false } = input;
  const { key, value } = typesOf(input);
  const random = new Random(headWidth + position);
  return {
    query: random.floats(kvHeads * group * headWidth * (gated ? 2 : 1), 4),
    key: random.floats(kvHeads * headWidth, 4),
    value: random.floats(kvHeads * headWidth, 1000),
    queryNorm: random.floats(headWidth),
    keyNorm: random.floats(headWidth),
    keys: new Cache(position + 1, headWidth, random, () => 8, key),
    values: new Cache(position + 1, headWidth, random, () => 1000, value),
    radians: Array.from({ length: rotary / 2 }, (_, i) => 100 ** ((-2 * i) / rotary)),
  };
}

type Data = ReturnType<typeof dataOf>;

function run(bench: Workbench, input: RotaryInput, force: Force): number {
  const { headWidth, group, quantizes = false, borrows = false } = input;
  const data = dataOf(input);
  const heads = kvHeads * group;
  const result = bench.floats(heads * headWidth);
  const caches = {
    keyCache: bench.upload(data.keys.bytes),
    valueCache: bench.upload(data.values.bytes),
  };
  bench.run((context) =>
    rotaryAttention(
      { ...context, force: { ...force, activation: quantizes ? "int8" : "float" } },
      { ...argumentsOf(bench, input, data), ...caches, result, workspace: result },
    ),
  );
  const own = ownHeads(input, data);
  const actual = quantizes
    ? readCodes(bench, result, 1, 1, heads * headWidth)
    : bench.read(result, heads * headWidth);
  const found = relativeError(actual, expectedOf(input, data, own));
  if (borrows) return found;
  const types = typesOf(input);
  const stored = (of: "key" | "value", slice: BufferSlice, cache: Cache) =>
    relativeError(
      own.flatMap((_head, i) => cache.read(hostBytes(slice), i, input.position)),
      own.flatMap((head) => throughCache(types[of], head[of])),
    );
  const halfError = Math.max(
    stored("key", caches.keyCache, data.keys),
    stored("value", caches.valueCache, data.values),
  );
  return Math.max(found, (halfError / halfBound) * (quantizes ? codesBound : floatBound));
}

function argumentsOf(bench: Workbench, input: RotaryInput, data: Data) {
  const { headWidth, group, position, splits, pairs, rotary, cap, teams } = input;
  const { norms = false, gated = false, quantizes = false, borrows = false } = input;
  const shape = { heads: kvHeads * group, kvHeads, headWidth };
  return {
    ...shape,
    query: bench.upload(data.query),
    gated,
    kvTypes: typesOf(input),
    rope: {
      key: borrows ? undefined : bench.upload(data.key),
      value: borrows ? undefined : bench.upload(data.value),
      ...(rotary === 0 ? {} : { frequencies: bench.upload(rotaryTurns(data.radians)) }),
      ...{ rotary, pairs, magnitude, epsilon, normValue: norms },
      ...(norms && {
        queryNorm: bench.vector("query norm", data.queryNorm),
        keyNorm: bench.vector("key norm", data.keyNorm),
      }),
    },
    reader: quantizes ? readers.int8 : readers.float,
    deterministic: false,
    parts: bench.upload(new Uint8Array(attentionPartBytes([shape]))),
    step: uploadStep(bench, [{ token: 0, position, sequence: 0 }], { tables: [data.keys.table] }),
    ...{ rowCapacity: 1, scale, cap, splits, window: input.window ?? position + 1 },
    ...(teams === undefined ? {} : { teams }),
  };
}

interface OwnHead {
  readonly key: readonly number[];
  readonly value: readonly number[];
}

/** The row's own keys and values, before they are rounded to halves. */
function ownHeads(input: RotaryInput, { key, value, keyNorm, radians }: Data): OwnHead[] {
  const { headWidth, norms = false } = input;
  const ones = new Float32Array(headWidth).fill(1);
  return Array.from({ length: kvHeads }, (_unused, head) => {
    const [from, end] = [head * headWidth, (head + 1) * headWidth];
    const values = value.subarray(from, end);
    return {
      key: rotatedHead(input, key.subarray(from, end), keyNorm, radians),
      value: Array.from(norms ? rmsNormReference(values, ones, epsilon) : values),
    };
  });
}

function rotatedHead(
  { position, pairs, rotary, norms = false }: RotaryInput,
  head: Float32Array,
  weight: Float32Array,
  radians: readonly number[],
): number[] {
  const normed = norms ? rmsNormReference(head, weight, epsilon) : head;
  const turned = ropeReference(Array.from(normed), position, radians, pairs);
  return turned.map((x, i) => (i < rotary ? x * magnitude : x));
}

function expectedOf(input: RotaryInput, data: Data, own: readonly OwnHead[]): number[] {
  const { headWidth, group, position, cap, gated = false, borrows = false } = input;
  const visible = Array.from({ length: position + 1 }, (_unused, token) => token);
  const inWindow = visible.slice(-(input.window ?? visible.length));
  const stride = gated ? 2 * headWidth : headWidth;
  return Array.from({ length: kvHeads * group }, (_unused, head) => {
    const kvHead = Math.floor(head / group);
    const from = head * stride;
    const cached = (cache: Cache, of: "key" | "value") =>
      inWindow.map((token) =>
        token === position && !borrows
          ? throughCache(typesOf(input)[of], own[kvHead]?.[of] ?? [])
          : cache.head(kvHead, token),
      );
    const query = data.query.subarray(from, from + headWidth);
    const gate = data.query.subarray(from + headWidth, from + stride);
    return attentionReference({
      query: Float32Array.from(rotatedHead(input, query, data.queryNorm, data.radians)),
      keys: cached(data.keys, "key"),
      values: cached(data.values, "value"),
      scale,
      cap,
    }).map((x, i) => (gated ? x / (1 + Math.exp(-(gate[i] ?? 0))) : x));
  }).flat();
}

const codesBound = 0.05;
/** Of what is stored: halves, and the smallest ones are coarse. */
const halfBound = 2e-3;
/** Halves that round otherwise than the reference's move what is seen through them. */
const floatBound = 1e-3;

function describe({ position, splits, ...input }: RotaryInput): string {
  const extras = Object.entries(input).map(([name, value]) => `${name} ${value}`);
  return [`rotary, ${position + 1} keys`, `${splits} splits`, ...extras].join(", ");
}

export const rotaryAttentionCases: readonly VerifyCase[] = reductions.flatMap(
  ({ variant, force, ...rest }) =>
    [...inputs, ...(variant === "subgroup" ? subgroupInputs : [])].map((input) => ({
      kernel: "attention",
      variant,
      name: describe(input),
      bound: input.quantizes === true ? codesBound : floatBound,
      ...rest,
      run: (bench: Workbench) => run(bench, input, force),
    })),
);
