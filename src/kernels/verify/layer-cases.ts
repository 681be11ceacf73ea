/** Norms, activations, rotary embedding with the cache, and attention. */
import { floatToHalf, halfToFloat } from "../../tensor/half.ts";
import { attention, attentionPartBytes } from "../attention.ts";
import { rmsNorm } from "../rms-norm.ts";
import { ropeCache, rotaryTurns } from "../rope-cache.ts";
import { blockTokens } from "../step.ts";
import { swiglu } from "../swiglu.ts";
import { reductions, relativeError, type Force, type VerifyCase } from "./case.ts";
import { Random } from "./random.ts";
import {
  attentionReference,
  rmsNormReference,
  ropeReference,
  swigluReference,
} from "./reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

function normCase(width: number, force: Force, variant: string): Omit<VerifyCase, "needs"> {
  return {
    kernel: "rms_norm",
    variant,
    name: `rows 4 and 1 of 5, width ${width}`,
    bound: 1e-5,
    run(bench) {
      const random = new Random(width);
      const x = random.floats(5 * width, 60_000);
      const weight = random.floats(width);
      const step = uploadStep(bench, plainRows(5), { outputs: [4, 1] });
      const y = bench.floats(5 * width);
      bench.run((context) =>
        rmsNorm(
          { ...context, force },
          {
            x: bench.upload(x),
            weight: bench.vector("weight", weight),
            y,
            step,
            rowCapacity: 5,
            epsilon: 1e-5,
            gather: true,
          },
        ),
      );
      const all = rmsNormReference(x, weight, 1e-5);
      const expected = [4, 1].flatMap((row) =>
        Array.from(all.subarray(row * width, (row + 1) * width)),
      );
      return relativeError(bench.read(y, expected.length), expected);
    },
  };
}

function swigluCase(switched: boolean): VerifyCase {
  return {
    kernel: "swiglu",
    variant: switched ? "switched" : "f32",
    name: "3 of 4 rows, width 260, gates from -100 to 100",
    bound: 1e-5,
    run(bench) {
      const random = new Random(7);
      const gate = random.floats(4 * 260, 100);
      const up = random.floats(4 * 260);
      const rowSwitch = random.floats(4, 6);
      const step = uploadStep(bench, plainRows(3), { capacity: 4 });
      const y = bench.floats(4 * 260);
      bench.run((context) =>
        swiglu(context, {
          gate: bench.upload(gate),
          up: bench.upload(up),
          y,
          rowSwitch: switched ? bench.upload(rowSwitch) : undefined,
          step,
          rowCapacity: 4,
          width: 260,
        }),
      );
      const expected = swigluReference(gate, up).map((value, i) =>
        switched ? value / (1 + Math.exp(-(rowSwitch[Math.floor(i / 260)] ?? 0))) : value,
      );
      return relativeError(bench.read(y, 3 * 260), expected.subarray(0, 3 * 260));
    },
  };
}

/** Positions far apart, in two sequences whose cache blocks are interleaved and out of order. */
const ropeRows = [
  { token: 0, position: 0, sequence: 0 },
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
  readonly far: number;
  /** Heads are normalized first, and queries have their gates between them. */
  readonly gated?: boolean;
}

function ropeCase(input: RopeInput, force: Force, variant: string): Omit<VerifyCase, "needs"> {
  const { pairs, headWidth, rotary, far, gated = false } = input;
  const details = [
    `head width ${headWidth}`,
    `${rotary} rotated`,
    `frequencies times ${far}`,
    ...(gated ? ["norms, gated queries"] : []),
  ];
  return {
    kernel: "rope_cache",
    variant: `${pairs} ${variant}`,
    name: details.join(", "),
    bound: 1e-3,
    run: (bench) => runRope(bench, input, force),
  };
}

function runRope(bench: Workbench, input: RopeInput, force: Force): number {
  const { pairs, headWidth, rotary, far, gated = false } = input;
  const [heads, kvHeads] = [3, 2];
  const random = new Random(headWidth + rotary);
  const radians = Array.from({ length: rotary / 2 }, (_, i) => far * 10_000 ** ((-2 * i) / rotary));
  const [query, key, value] = [heads, kvHeads, kvHeads].map((count) =>
    random.floats(ropeRows.length * count * headWidth, 5),
  ) as [Float32Array, Float32Array, Float32Array];
  const [queryNorm, keyNorm] = [random.floats(headWidth), random.floats(headWidth)];
  const epsilon = 1e-6;
  const rotated = bench.floats(query.length);
  const words = (6 * kvHeads * blockTokens * headWidth) / 2;
  const [keyCache, valueCache] = [bench.floats(words), bench.floats(words)];
  bench.run((context) =>
    ropeCache(
      { ...context, force },
      {
        query: bench.upload(gated ? spread(query, headWidth) : query),
        rotated,
        key: bench.upload(key),
        value: bench.upload(value),
        keyCache,
        valueCache,
        frequencies: bench.upload(rotaryTurns(radians)),
        step: uploadStep(bench, ropeRows, { tables: ropeTables }),
        rowCapacity: ropeRows.length,
        heads,
        kvHeads,
        headWidth,
        rotary,
        pairs,
        ...(gated && {
          queryStride: 2 * headWidth,
          queryNorm: bench.vector("query norm", queryNorm),
          keyNorm: bench.vector("key norm", keyNorm),
          epsilon,
        }),
      },
    ),
  );
  const rotate = (source: Float32Array, norm: Float32Array, count: number) => {
    const heads_ = gated ? rmsNormReference(source, norm, epsilon) : source;
    return ropeRows.flatMap(({ position }, row) =>
      Array.from({ length: count }, (_unused, head) => {
        const start = (row * count + head) * headWidth;
        const values = heads_.subarray(start, start + headWidth);
        return ropeReference(values, position, radians, pairs);
      }).flat(),
    );
  };
  return Math.max(
    // Queries are floats and must be far closer than the halves in the cache.
    relativeError(bench.read(rotated, query.length), rotate(query, queryNorm, heads)) * 500,
    relativeError(readCache(bench, keyCache, kvHeads, headWidth), rotate(key, keyNorm, kvHeads)),
    relativeError(readCache(bench, valueCache, kvHeads, headWidth), value),
  );
}

/** Puts a gate that nobody must read behind each head. */
function spread(heads: Float32Array, headWidth: number): Float32Array {
  return Float32Array.from({ length: 2 * heads.length }, (_unused, i) => {
    const within = i % (2 * headWidth);
    const head = Math.floor(i / (2 * headWidth));
    return within < headWidth ? (heads[head * headWidth + within] ?? 0) : Number.NaN;
  });
}

/** What the rows of `ropeRows` left in a cache, row by row and head by head. */
function readCache(
  bench: Workbench,
  cache: Parameters<Workbench["read"]>[0],
  kvHeads: number,
  headWidth: number,
) {
  const halves = new Uint16Array(bench.read(cache).buffer);
  return ropeRows.flatMap(({ position, sequence }) => {
    const block = ropeTables[sequence]?.[Math.floor(position / blockTokens)] ?? 0;
    return Array.from({ length: kvHeads }, (_unused, head) => {
      const slot = ((block * kvHeads + head) * blockTokens + (position % blockTokens)) * headWidth;
      return Array.from(halves.subarray(slot, slot + headWidth), halfToFloat);
    }).flat();
  });
}

interface AttentionInput {
  readonly headWidth: number;
  readonly group: number;
  readonly position: number;
  readonly splits: number;
  readonly window?: number;
  /** Keys before this one score far lower than those after it. */
  readonly lateMaximum?: number;
}

function attentionCase(
  input: AttentionInput,
  force: Force,
  variant: string,
): Omit<VerifyCase, "needs"> {
  const { headWidth, group, position, splits, window, lateMaximum } = input;
  const details = [
    `head width ${headWidth}`,
    `${group} query heads`,
    `${position + 1} keys`,
    `${splits} parts`,
    ...(window === undefined ? [] : [`window ${window}`]),
    ...(lateMaximum === undefined ? [] : [`large scores from ${lateMaximum}`]),
  ];
  return {
    kernel: "attention",
    variant,
    name: details.join(", "),
    bound: 1e-5,
    run: (bench) => runAttention(bench, input, force),
  };
}

function runAttention(bench: Workbench, input: AttentionInput, force: Force): number {
  const { headWidth, group, position, splits, window = position + 1, lateMaximum = 0 } = input;
  const kvHeads = 2;
  const heads = kvHeads * group;
  const random = new Random(headWidth + position);
  const blocks = Math.ceil((position + 1) / blockTokens);
  const table = Array.from({ length: blocks }, (_unused, i) => blocks - 1 - i);
  const query = random.floats(2 * heads * headWidth);
  const cacheSize = blocks * kvHeads * blockTokens * headWidth;
  const cacheOf = (magnitude: (token: number) => number) =>
    Uint16Array.from({ length: cacheSize }, (_unused, i) => {
      const block = Math.floor(i / (kvHeads * blockTokens * headWidth));
      const token = table.indexOf(block) * blockTokens + (Math.floor(i / headWidth) % blockTokens);
      return floatToHalf(random.between(-1, 1) * magnitude(token));
    });
  const keys = cacheOf((token) => (token < lateMaximum ? 0.1 : 8));
  const values = cacheOf(() => 1e4);
  const rows = [position, Math.floor(position / 2)].map((p) => ({
    token: 0,
    position: p,
    sequence: 0,
  }));
  const step = uploadStep(bench, rows, { tables: [table] });
  const result = bench.floats(query.length);
  const parts = bench.floats(attentionPartBytes(2, heads, headWidth, splits) / 4);
  bench.run((context) =>
    attention(
      { ...context, force },
      {
        query: bench.upload(query),
        keyCache: bench.upload(keys),
        valueCache: bench.upload(values),
        result,
        parts,
        step,
        rowCapacity: 2,
        heads,
        kvHeads,
        headWidth,
        scale: 0.3,
        window,
        splits,
      },
    ),
  );
  const headAt = (cache: Uint16Array, kvHead: number, token: number) => {
    const block = table[Math.floor(token / blockTokens)] ?? 0;
    const slot = ((block * kvHeads + kvHead) * blockTokens + (token % blockTokens)) * headWidth;
    return Array.from(cache.subarray(slot, slot + headWidth), halfToFloat);
  };
  const expected = rows.flatMap(({ position: p }, row) =>
    Array.from({ length: heads }, (_unused, head) => {
      const visible = Array.from({ length: p + 1 }, (_unused2, token) => token).slice(-window);
      const kvHead = Math.floor(head / group);
      const start = (row * heads + head) * headWidth;
      return attentionReference(
        query.subarray(start, start + headWidth),
        visible.map((token) => headAt(keys, kvHead, token)),
        visible.map((token) => headAt(values, kvHead, token)),
        0.3,
      );
    }).flat(),
  );
  return relativeError(bench.read(result, expected.length), expected);
}

const attentionInputs: readonly AttentionInput[] = [
  { headWidth: 64, group: 1, position: 0, splits: 1 },
  { headWidth: 128, group: 4, position: 31, splits: 1 },
  { headWidth: 80, group: 3, position: 32, splits: 2 },
  { headWidth: 96, group: 2, position: 300, splits: 4, lateMaximum: 250 },
  { headWidth: 256, group: 8, position: 150, splits: 3, window: 40 },
  { headWidth: 512, group: 2, position: 64, splits: 1, window: 64 },
];

const ropeInputs: readonly RopeInput[] = [
  { pairs: "neighbours", headWidth: 64, rotary: 64, far: 1 },
  { pairs: "halves", headWidth: 128, rotary: 128, far: 1 },
  { pairs: "halves", headWidth: 80, rotary: 32, far: 1000 },
  { pairs: "neighbours", headWidth: 128, rotary: 64, far: 1 },
  { pairs: "halves", headWidth: 256, rotary: 64, far: 1, gated: true },
  { pairs: "neighbours", headWidth: 40, rotary: 40, far: 1, gated: true },
];

export const layerCases: readonly VerifyCase[] = [
  ...reductions.flatMap(({ variant, force, ...rest }) => [
    ...[4, 64, 260, 4096].map((width) => ({ ...normCase(width, force, variant), ...rest })),
    ...attentionInputs.map((input) => ({ ...attentionCase(input, force, variant), ...rest })),
    ...ropeInputs.map((input) => ({ ...ropeCase(input, force, variant), ...rest })),
  ]),
  swigluCase(false),
  swigluCase(true),
];
