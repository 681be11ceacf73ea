/** Attention of one row with norms, rotation and the write to the cache in the same dispatch. */
import { floatToHalf, halfToFloat } from "../../tensor/half.ts";
import { attentionPartBytes } from "../attention.ts";
import { rotaryAttention } from "../rotary-attention.ts";
import { rotaryTurns } from "../rope-cache.ts";
import { blockTokens } from "../step.ts";
import { Cache, kvHeads, readers } from "./attention-cases.ts";
import { reductions, relativeError, type Force, type VerifyCase } from "./case.ts";
import { readCodes } from "./codes.ts";
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
];

const teamInputs: readonly RotaryInput[] = [
  {
    ...{ headWidth: 128, group: 6, position: 256, splits: 3, pairs: "neighbours", rotary: 128 },
    ...{ teams: 4, norms: true },
  },
];

const [scale, epsilon, magnitude] = [0.3, 0.1, 1.25];

function run(bench: Workbench, input: RotaryInput, force: Force): number {
  const { headWidth, group, position, splits, pairs, rotary, cap, teams } = input;
  const { norms = false, gated = false, quantizes = false, borrows = false } = input;
  const { window = position + 1 } = input;
  const heads = kvHeads * group;
  const random = new Random(headWidth + position);
  const query = random.floats(heads * headWidth * (gated ? 2 : 1), 4);
  const key = random.floats(kvHeads * headWidth, 4);
  const value = random.floats(kvHeads * headWidth, 1000);
  const [queryNorm, keyNorm] = [random.floats(headWidth), random.floats(headWidth)];
  const keys = new Cache(position + 1, headWidth, random, () => 8);
  const values = new Cache(position + 1, headWidth, random, () => 1000);
  const radians = Array.from({ length: rotary / 2 }, (_, i) => 100 ** ((-2 * i) / rotary));
  const shape = { heads, kvHeads, headWidth };
  const result = bench.floats(heads * headWidth);
  const [keyCache, valueCache] = [bench.upload(keys.halves), bench.upload(values.halves)];
  bench.run((context) =>
    rotaryAttention(
      { ...context, force: { ...force, activation: quantizes ? "int8" : "float" } },
      {
        ...shape,
        query: bench.upload(query),
        gated,
        rope: {
          key: borrows ? undefined : bench.upload(key),
          value: borrows ? undefined : bench.upload(value),
          ...(rotary === 0 ? {} : { frequencies: bench.upload(rotaryTurns(radians)) }),
          rotary,
          pairs,
          magnitude,
          epsilon,
          normValue: norms,
          ...(norms && {
            queryNorm: bench.vector("query norm", queryNorm),
            keyNorm: bench.vector("key norm", keyNorm),
          }),
        },
        keyCache,
        valueCache,
        result,
        reader: quantizes ? readers.int8 : readers.float,
        workspace: result,
        deterministic: false,
        parts: bench.upload(new Uint8Array(attentionPartBytes([shape]))),
        step: uploadStep(bench, [{ token: 0, position, sequence: 0 }], { tables: [keys.table] }),
        rowCapacity: 1,
        scale,
        cap,
        window,
        splits,
        ...(teams === undefined ? {} : { teams }),
      },
    ),
  );

  const normed = (head: Float32Array, weight: Float32Array) =>
    norms ? rmsNormReference(head, weight, epsilon) : head;
  const rotated = (head: Float32Array, weight: Float32Array) =>
    ropeReference(Array.from(normed(head, weight)), position, radians, pairs).map((x, i) =>
      i < rotary ? x * magnitude : x,
    );
  const headOf = (from: Float32Array, head: number, stride = headWidth) =>
    from.subarray(head * stride, head * stride + headWidth);
  const own = Array.from({ length: kvHeads }, (_unused, head) => ({
    key: rotated(headOf(key, head), keyNorm),
    value: Array.from(normed(headOf(value, head), new Float32Array(headWidth).fill(1))),
  }));
  const asHalves = (from: ArrayLike<number>) =>
    Array.from(from, (x) => halfToFloat(floatToHalf(x)));
  const expected = Array.from({ length: heads }, (_unused, head) => {
    const visible = Array.from({ length: position + 1 }, (_unused2, token) => token).slice(-window);
    const kvHead = Math.floor(head / group);
    const isOwn = (token: number) => token === position && !borrows;
    const stride = gated ? 2 * headWidth : headWidth;
    const gate = query.subarray(head * stride + headWidth, (head + 1) * stride);
    return attentionReference({
      query: Float32Array.from(rotated(headOf(query, head, stride), queryNorm)),
      keys: visible.map((token) =>
        isOwn(token) ? asHalves(own[kvHead]?.key ?? []) : keys.head(kvHead, token),
      ),
      values: visible.map((token) =>
        isOwn(token) ? asHalves(own[kvHead]?.value ?? []) : values.head(kvHead, token),
      ),
      scale,
      cap,
    }).map((x, i) => (gated ? x / (1 + Math.exp(-(gate[i] ?? 0))) : x));
  }).flat();
  const actual = quantizes
    ? readCodes(bench, result, 1, 1, heads * headWidth)
    : bench.read(result, expected.length);
  // A half of the cache may round otherwise than the reference's.
  const storedBound = quantizes ? codesBound : floatBound;
  const stored = (of: "key" | "value", cache: typeof keyCache, table: readonly number[]) =>
    borrows
      ? 0
      : relativeError(
          readRow(bench, cache, table, position, headWidth),
          own.flatMap((head) => head[of]),
        ) *
        (storedBound / 1e-3);
  return Math.max(
    relativeError(actual, expected),
    stored("key", keyCache, keys.table),
    stored("value", valueCache, values.table),
  );
}

/** What a cache has at a position, head by head. */
function readRow(
  bench: Workbench,
  cache: Parameters<Workbench["read"]>[0],
  table: readonly number[],
  position: number,
  headWidth: number,
): number[] {
  const halves = new Uint16Array(bench.read(cache).buffer);
  const block = table[Math.floor(position / blockTokens)] ?? 0;
  return Array.from({ length: kvHeads }, (_unused, head) => {
    const slot = ((block * kvHeads + head) * blockTokens + (position % blockTokens)) * headWidth;
    return Array.from(halves.subarray(slot, slot + headWidth), halfToFloat);
  }).flat();
}

const codesBound = 0.05;
/** Halves that round otherwise than the reference's move what is seen through them. */
const floatBound = 2e-3;

function describe({ position, splits, ...input }: RotaryInput): string {
  const extras = Object.entries(input).map(([name, value]) => `${name} ${value}`);
  return [`rotary, ${position + 1} keys`, `${splits} splits`, ...extras].join(", ");
}

export const rotaryAttentionCases: readonly VerifyCase[] = reductions.flatMap(
  ({ variant, force, ...rest }) =>
    [...inputs, ...(variant === "subgroup" ? teamInputs : [])].map((input) => ({
      kernel: "attention",
      variant,
      name: describe(input),
      bound: input.quantizes === true ? codesBound : floatBound,
      ...rest,
      run: (bench: Workbench) => run(bench, input, force),
    })),
);
