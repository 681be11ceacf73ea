/** Attention over caches whose blocks are out of order, at edges of tiles, splits and windows. */
import { floatToHalf, halfToFloat } from "../../tensor/half.ts";
import type { Matrix } from "../../tensor/tensor.ts";
import { attention, attentionPartBytes } from "../attention.ts";
import { blockTokens } from "../step.ts";
import { reductions, relativeError, type Force, type VerifyCase } from "./case.ts";
import { readCodes } from "./codes.ts";
import { Random } from "./random.ts";
import { attentionReference } from "./reference.ts";
import { uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

interface AttentionInput {
  readonly headWidth: number;
  readonly valueWidth?: number;
  readonly group: number;
  readonly position: number;
  readonly splits: number;
  readonly teams?: number;
  readonly loads?: number;
  readonly window?: number;
  /** Keys before this one score far lower than those after it. */
  readonly lateMaximum?: number;
  readonly cap?: number;
  readonly sinks?: boolean;
  readonly gated?: boolean;
  readonly quantizes?: boolean;
}

const inputs: readonly AttentionInput[] = [
  { headWidth: 64, group: 1, position: 0, splits: 1 },
  { headWidth: 80, group: 1, position: 75, splits: 1, loads: 8 },
  { headWidth: 128, group: 4, position: 31, splits: 1, quantizes: true },
  { headWidth: 80, group: 3, position: 32, splits: 2 },
  { headWidth: 96, group: 2, position: 300, splits: 4, lateMaximum: 250 },
  { headWidth: 256, group: 8, position: 150, splits: 3, window: 40, gated: true },
  { headWidth: 512, group: 2, position: 64, splits: 1, window: 64 },
  { headWidth: 64, valueWidth: 48, group: 2, position: 200, splits: 2, cap: 3, sinks: true },
  { headWidth: 64, valueWidth: 32, group: 8, position: 90, splits: 1, window: 33, sinks: true },
];

/** Several teams in a workgroup need subgroup operations. */
const teamInputs: readonly AttentionInput[] = [
  { headWidth: 64, group: 2, position: 190, splits: 1, teams: 4, sinks: true },
  { headWidth: 128, group: 5, position: 259, splits: 3, teams: 2, quantizes: true },
];

export const kvHeads = 2;
const scale = 0.3;

/** Any matrix that reads its activations as floats, or as codes. */
export const readers = {
  float: { name: "reader", dtype: "F32", rows: 1, columns: 1, planes: [] },
  int8: { name: "reader", dtype: "Q8_0", rows: 1, columns: 1, planes: [] },
} as const satisfies Record<string, Matrix>;

/** A cache of one sequence, [blocks, kvHeads, blockTokens, width], with its blocks in reverse. */
export class Cache {
  readonly halves: Uint16Array;
  readonly table: readonly number[];
  readonly #width: number;

  constructor(tokens: number, width: number, random: Random, magnitude: (token: number) => number) {
    const blocks = Math.ceil(tokens / blockTokens);
    this.#width = width;
    this.table = Array.from({ length: blocks }, (_unused, i) => blocks - 1 - i);
    // No numbers where nothing is.
    this.halves = new Uint16Array(blocks * kvHeads * blockTokens * width).fill(0x7e00);
    for (let token = 0; token < tokens; token++) {
      for (let head = 0; head < kvHeads; head++) {
        const slot = this.#slot(head, token);
        for (let i = 0; i < width; i++) {
          this.halves[slot + i] = floatToHalf(random.between(-1, 1) * magnitude(token));
        }
      }
    }
  }

  head(head: number, token: number): number[] {
    const slot = this.#slot(head, token);
    return Array.from(this.halves.subarray(slot, slot + this.#width), halfToFloat);
  }

  #slot(head: number, token: number): number {
    const block = this.table[Math.floor(token / blockTokens)] ?? 0;
    return ((block * kvHeads + head) * blockTokens + (token % blockTokens)) * this.#width;
  }
}

function run(bench: Workbench, input: AttentionInput, force: Force): number {
  const { headWidth, valueWidth = headWidth, group, position, splits, teams, loads } = input;
  const { window = position + 1, lateMaximum = 0, cap, gated = false, quantizes = false } = input;
  const heads = kvHeads * group;
  const random = new Random(headWidth + position);
  const query = random.floats(2 * heads * headWidth * (gated ? 2 : 1));
  const keys = new Cache(position + 1, headWidth, random, (token) =>
    token < lateMaximum ? 0.1 : 8,
  );
  const values = new Cache(position + 1, valueWidth, random, () => 1e4);
  const sinks = random.floats(heads, 8);
  const positions = [position, Math.floor(position / 2)];
  const rows = positions.map((p) => ({ token: 0, position: p, sequence: 0 }));
  const shape = { heads, kvHeads, headWidth, valueWidth };
  const result = bench.floats(2 * heads * valueWidth);
  const parts = bench.upload(new Uint8Array(attentionPartBytes([shape])));
  bench.run((context) =>
    attention(
      { ...context, force: { ...force, activation: quantizes ? "int8" : "float" } },
      {
        ...shape,
        result,
        parts,
        window,
        scale,
        splits,
        gated,
        cap,
        query: bench.upload(query),
        keyCache: bench.upload(keys.halves),
        valueCache: bench.upload(values.halves),
        reader: quantizes ? readers.int8 : readers.float,
        workspace: result,
        deterministic: false,
        step: uploadStep(bench, rows, { tables: [keys.table] }),
        rowCapacity: 2,
        ...(teams === undefined ? {} : { teams }),
        ...(loads === undefined ? {} : { loads }),
        ...(input.sinks === true && { sinks: bench.vector("sinks", sinks) }),
      },
    ),
  );
  const expected = positions.flatMap((p, row) =>
    Array.from({ length: heads }, (_unused, head) => {
      const visible = Array.from({ length: p + 1 }, (_unused2, token) => token).slice(-window);
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
  const actual = quantizes
    ? readCodes(bench, result, 2, 2, heads * valueWidth)
    : bench.read(result, expected.length);
  return relativeError(actual, expected);
}

function describe({ position, splits, ...input }: AttentionInput): string {
  const extras = Object.entries(input).map(([name, value]) => `${name} ${value}`);
  return [`${position + 1} keys`, `${splits} splits`, ...extras].join(", ");
}

export const attentionCases: readonly VerifyCase[] = reductions.flatMap(
  ({ variant, force, ...rest }) =>
    [...inputs, ...(variant === "subgroup" ? teamInputs : [])].map((input) => ({
      kernel: "attention",
      variant,
      name: describe(input),
      bound: input.quantizes === true ? 0.05 : 1e-5,
      ...rest,
      run: (bench: Workbench) => run(bench, input, force),
    })),
);
