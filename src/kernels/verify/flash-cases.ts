/** Attention on matrix units: chunks and single rows, at edges of tiles, blocks and windows. */
import type { Matrix } from "../../tensor/tensor.ts";
import { attentionPartBytes } from "../attention.ts";
import { flashAttention } from "../flash-attention.ts";
import { isScrambled, type KvTypeName } from "../kv-type.ts";
import { blockTokens } from "../step.ts";
import { unscramble } from "../unscramble.ts";
import { asKeysAre, Cache, kvHeads, typesOf } from "./attention-cases.ts";
import { relativeError, type VerifyCase } from "./case.ts";
import { Random } from "./random.ts";
import { attentionReference } from "./reference.ts";
import { uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

interface FlashInput {
  readonly headWidth: number;
  readonly group: number;
  /** Positions of the chunk's rows, first and last; one row of another sequence follows. */
  readonly chunk: readonly [first: number, last: number];
  readonly subgroups: number;
  readonly parts?: number;
  readonly splits?: number;
  readonly window?: number;
  /** Keys before this one score far lower than those after it. */
  readonly lateMaximum?: number;
  readonly cap?: number;
  readonly sinks?: boolean;
  readonly gated?: boolean;
  readonly kv?: KvTypeName;
}

const inputs: readonly FlashInput[] = [
  { headWidth: 64, group: 1, chunk: [0, 36], subgroups: 2 },
  { headWidth: 80, group: 3, chunk: [60, 70], subgroups: 2, lateMaximum: 50 },
  { headWidth: 128, group: 4, chunk: [31, 40], subgroups: 1, parts: 2, window: 9, sinks: true },
  { headWidth: 64, group: 8, chunk: [90, 98], subgroups: 4, window: 33, gated: true, cap: 3 },
  { headWidth: 64, group: 2, chunk: [20, 56], subgroups: 2, kv: "q8_0" },
  { headWidth: 128, group: 4, chunk: [90, 98], subgroups: 2, splits: 2, sinks: true },
  { headWidth: 64, group: 8, chunk: [100, 140], subgroups: 1, splits: 8, window: 50, cap: 3 },
  {
    ...{ headWidth: 80, group: 1, chunk: [3, 40], subgroups: 4, splits: 4, lateMaximum: 30 },
    gated: true,
  },
  { headWidth: 80, group: 3, chunk: [60, 70], subgroups: 2, lateMaximum: 50, kv: "tq4" },
  {
    ...{ headWidth: 128, group: 4, chunk: [31, 40], subgroups: 1, parts: 2, window: 9 },
    ...{ sinks: true, kv: "tq3" },
  },
  {
    ...{ headWidth: 256, group: 8, chunk: [90, 98], subgroups: 1, parts: 2, gated: true, cap: 3 },
    kv: "q8_0,tq4",
  },
];

const scale = 0.3;
const reader: Matrix = { name: "reader", dtype: "F32", rows: 1, columns: 1, planes: [] };
/** Of the other sequence. */
const otherPosition = 40;

/** What goes in: rows of the chunk and one of the other sequence, behind it in the caches. */
function dataOf(input: FlashInput) {
  const { headWidth, group, chunk, gated, lateMaximum = 0 } = input;
  const [first, last] = chunk;
  const { key, value } = typesOf(input);
  const random = new Random(headWidth + last);
  const ownBlocks = Math.ceil((last + 1) / blockTokens);
  const tokens = ownBlocks * blockTokens + otherPosition + 1;
  const rows = Array.from({ length: last - first + 1 }, (_unused, i) => [0, first + i] as const);
  const places = [...rows, [1, otherPosition] as const];
  const capacity = places.length + 3;
  const heads = kvHeads * group;
  return {
    ownBlocks,
    places,
    capacity,
    keys: new Cache(tokens, headWidth, random, (token) => (token < lateMaximum ? 0.1 : 4), key),
    values: new Cache(tokens, headWidth, random, () => 1e4, value),
    query: random.floats(capacity * heads * headWidth * (gated === true ? 2 : 1)),
    sinks: random.floats(heads, 8),
  };
}

function run(bench: Workbench, input: FlashInput): number {
  const { headWidth, group, chunk, subgroups, cap, gated = false } = input;
  const { parts = 1, splits = 1 } = input;
  const { window = chunk[1] + 1 } = input;
  const data = dataOf(input);
  const { ownBlocks, places, capacity, keys, values, query, sinks } = data;
  const heads = kvHeads * group;
  const result = bench.floats(capacity * heads * headWidth);
  const shape = { heads, kvHeads, headWidth };
  const queries = bench.upload(asKeysAre(typesOf(input), query, headWidth, gated ? 2 : 1));
  const step = uploadStep(
    bench,
    places.map(([sequence, position]) => ({ token: 0, position, sequence })),
    { capacity, tables: [keys.table.slice(0, ownBlocks), keys.table.slice(ownBlocks)] },
  );
  const kvTypes = typesOf(input);
  bench.run((context) => {
    flashAttention(
      context,
      {
        ...shape,
        query: queries,
        keyCache: bench.upload(keys.bytes),
        valueCache: bench.upload(values.bytes),
        kvTypes,
        result,
        reader,
        workspace: bench.floats(capacity * heads * splits * (headWidth + 8) * 8),
        parts: bench.upload(new Uint8Array(attentionPartBytes([shape]))),
        step,
        rowCapacity: capacity,
        deterministic: false,
        scale,
        window,
        cap,
        gated,
        ...(input.sinks === true && { sinks: bench.vector("sinks", sinks) }),
      },
      { subgroups, parts, splits },
    );
    if (!isScrambled(kvTypes.value)) return;
    const gates = gated ? queries : undefined;
    unscramble(context, { ...shape, x: result, gates, step, rowCapacity: capacity });
  });
  const expected = expectedOf(input, data);
  return relativeError(bench.read(result, expected.length), expected);
}

function expectedOf(input: FlashInput, data: ReturnType<typeof dataOf>): number[] {
  const { headWidth, group, chunk, cap, gated = false, window = chunk[1] + 1 } = input;
  const { ownBlocks, places, keys, values, query, sinks } = data;
  const heads = kvHeads * group;
  return places.flatMap(([sequence, position], row) =>
    Array.from({ length: heads }, (_unused, head) => {
      const offset = sequence * ownBlocks * blockTokens;
      const all = Array.from({ length: position + 1 }, (_unused2, token) => offset + token);
      const visible = all.slice(-window);
      const kvHead = Math.floor(head / group);
      const start = (row * heads + head) * headWidth * (gated ? 2 : 1);
      const gate = query.subarray(start + headWidth, start + 2 * headWidth);
      return attentionReference({
        query: query.subarray(start, start + headWidth),
        keys: visible.map((token) => keys.head(kvHead, token)),
        values: visible.map((token) => values.head(kvHead, token)),
        scale,
        cap,
        sink: input.sinks === true ? sinks[head] : undefined,
      }).map((value, i) => (gated ? value / (1 + Math.exp(-(gate[i] ?? 0))) : value));
    }).flat(),
  );
}

export const flashCases: readonly VerifyCase[] = inputs.map((input) => {
  const { chunk, ...rest } = input;
  const extras = Object.entries(rest).map(([name, value]) => `${name} ${value}`);
  return {
    kernel: "flash_attention",
    variant: "halves",
    name: [`rows at ${chunk.join(" to ")} and one alone`, ...extras].join(", "),
    // Queries and weights are rounded to halves.
    bound: 5e-3,
    needs: "matrix units",
    run: (bench: Workbench) => run(bench, input),
  };
});
