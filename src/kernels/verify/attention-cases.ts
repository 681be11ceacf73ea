/** Attention over caches whose blocks are out of order, at edges of tiles, splits and windows. */
import { invariant } from "../../errors.ts";
import type { Matrix } from "../../tensor/tensor.ts";
import type { BufferSlice } from "../../vulkan/buffer.ts";
import { attention, attentionPartBytes } from "../attention.ts";
import {
  isScrambled,
  parseKvTypes,
  type KvType,
  type KvTypeName,
  type KvTypes,
} from "../kv-type.ts";
import { blockTokens } from "../step.ts";
import { reductions, relativeError, type Force, type VerifyCase } from "./case.ts";
import { readCodes } from "./codes.ts";
import { readHalves } from "./halves.ts";
import { decode, encode, place, scramble, take, tileBytes, unscramble } from "./kv-codec.ts";
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
  /** What it is written as, if not as floats: codes, or tiles of halves. */
  readonly result?: "int8" | "tile";
  readonly kv?: KvTypeName;
}

const inputs: readonly AttentionInput[] = [
  { headWidth: 64, group: 1, position: 0, splits: 1 },
  { headWidth: 80, group: 1, position: 75, splits: 1, loads: 8 },
  { headWidth: 128, group: 4, position: 31, splits: 1, result: "int8" },
  { headWidth: 80, group: 3, position: 32, splits: 2 },
  { headWidth: 96, group: 2, position: 300, splits: 4, lateMaximum: 250 },
  { headWidth: 256, group: 8, position: 150, splits: 3, window: 40, gated: true },
  { headWidth: 512, group: 2, position: 64, splits: 1, window: 64 },
  { headWidth: 64, valueWidth: 48, group: 2, position: 200, splits: 2, cap: 3, sinks: true },
  { headWidth: 64, valueWidth: 32, group: 8, position: 90, splits: 1, window: 33, sinks: true },
  { headWidth: 80, group: 3, position: 95, splits: 2, kv: "q8_0,tq3" },
  { headWidth: 96, group: 2, position: 300, splits: 4, lateMaximum: 250, kv: "tq4" },
  { headWidth: 80, group: 3, position: 75, splits: 2, result: "tile" },
];

/** For one reduction: several teams in a workgroup need subgroups, and codes are decoded alike. */
const subgroupInputs: readonly AttentionInput[] = [
  { headWidth: 64, group: 2, position: 190, splits: 1, teams: 4, sinks: true },
  { headWidth: 128, group: 5, position: 259, splits: 3, teams: 2, result: "int8" },
  { headWidth: 128, group: 5, position: 259, splits: 3, teams: 2, result: "int8", kv: "tq4" },
  { headWidth: 64, group: 2, position: 190, splits: 1, teams: 4, result: "tile" },
  { headWidth: 256, group: 4, position: 150, splits: 3, gated: true, result: "tile" },
  { headWidth: 128, group: 5, position: 259, splits: 3, teams: 2, result: "tile", kv: "tq4" },
  { headWidth: 64, group: 2, position: 75, splits: 1, loads: 8, kv: "q8_0" },
  { headWidth: 128, group: 4, position: 63, splits: 1, result: "int8", loads: 2, kv: "tq3" },
  { headWidth: 256, group: 8, position: 150, splits: 3, window: 40, gated: true, kv: "tq4,q8_0" },
  { headWidth: 512, group: 2, position: 64, splits: 1, window: 64, kv: "tq3,f16" },
  {
    ...{ headWidth: 64, valueWidth: 48, group: 2, position: 200, splits: 2, cap: 3, sinks: true },
    kv: "f16,tq4",
  },
];

export const kvHeads = 2;
const rowCount = 3;
const rowCapacity = 5;
const scale = 0.3;

/** Any matrix that reads its activations as floats, as codes, or in tiles. */
export const readers = {
  float: { name: "reader", dtype: "F32", rows: 1, columns: 1, planes: [] },
  int8: { name: "reader", dtype: "Q8_0", rows: 1, columns: 1, planes: [] },
  tile: { name: "reader", dtype: "F16", rows: 1, columns: 1, planes: [] },
} as const satisfies Record<string, Matrix>;

/** A cache of one sequence, [blocks, kvHeads, blockTokens, width], with its blocks in reverse. */
export class Cache {
  readonly bytes: Uint8Array;
  readonly table: readonly number[];
  readonly #width: number;
  readonly #type: KvType;

  constructor(
    tokens: number,
    width: number,
    random: Random,
    magnitude: (token: number) => number,
    type: KvType = "f16",
  ) {
    const blocks = Math.ceil(tokens / blockTokens);
    this.#width = width;
    this.#type = type;
    this.table = Array.from({ length: blocks }, (_unused, i) => blocks - 1 - i);
    // No numbers where nothing is.
    this.bytes = new Uint8Array(blocks * kvHeads * tileBytes(type, width)).fill(0xff);
    for (let token = 0; token < tokens; token++) {
      for (let head = 0; head < kvHeads; head++) {
        const values = Array.from(
          { length: width },
          () => random.between(-1, 1) * magnitude(token),
        );
        const tile = tileOf(this.bytes, this, type, width, head, token);
        place(type, tile, token % blockTokens, encode(type, values));
      }
    }
  }

  /** As it was before it was scrambled, if it is. */
  head(head: number, token: number): number[] {
    return this.read(this.bytes, head, token);
  }

  /** The same of a cache with the same layout. */
  read(bytes: Uint8Array, head: number, token: number): number[] {
    const tile = tileOf(bytes, this, this.#type, this.#width, head, token);
    const stored = take(this.#type, tile, token % blockTokens, this.#width);
    const seen = decode(this.#type, stored);
    return isScrambled(this.#type) ? unscramble(seen) : seen;
  }
}

/** The tile that has a position of a head. */
function tileOf(
  bytes: Uint8Array,
  { table }: { readonly table: readonly number[] },
  type: KvType,
  width: number,
  head: number,
  token: number,
): Uint8Array {
  const block = table[Math.floor(token / blockTokens)] ?? 0;
  const byteSize = tileBytes(type, width);
  return bytes.subarray((block * kvHeads + head) * byteSize).subarray(0, byteSize);
}

/** Of a case that may leave them out. */
export function typesOf({ kv = "f16" }: { readonly kv?: KvTypeName }): KvTypes {
  const types = parseKvTypes(kv);
  invariant(types !== undefined, `kv types ${kv}`);
  return types;
}

function run(bench: Workbench, input: AttentionInput, force: Force): number {
  const { headWidth, valueWidth = headWidth, group, position, splits, teams, loads } = input;
  const {
    window = position + 1,
    lateMaximum = 0,
    cap,
    gated = false,
    result: kind = "float",
  } = input;
  const heads = kvHeads * group;
  const kvTypes = typesOf(input);
  const random = new Random(headWidth + position);
  const query = random.floats(rowCapacity * heads * headWidth * (gated ? 2 : 1));
  const magnitude = (token: number) => (token < lateMaximum ? 0.1 : 8);
  const keys = new Cache(position + 1, headWidth, random, magnitude, kvTypes.key);
  const values = new Cache(position + 1, valueWidth, random, () => 1e4, kvTypes.value);
  const sinks = random.floats(heads, 8);
  const positions = [position, Math.floor(position / 2), Math.floor(position / 3)];
  const rows = positions.map((p) => ({ token: 0, position: p, sequence: 0 }));
  const shape = { heads, kvHeads, headWidth, valueWidth };
  const result = bench.floats(rowCapacity * heads * valueWidth);
  const parts = bench.upload(new Uint8Array(attentionPartBytes([shape])));
  bench.run((context) =>
    attention(
      { ...context, force: { ...force, activation: kind } },
      {
        ...shape,
        result,
        parts,
        window,
        scale,
        splits,
        gated,
        cap,
        query: bench.upload(asKeysAre(kvTypes, query, headWidth, gated ? 2 : 1)),
        keyCache: bench.upload(keys.bytes),
        valueCache: bench.upload(values.bytes),
        kvTypes,
        reader: readers[kind],
        workspace: result,
        deterministic: false,
        step: uploadStep(bench, rows, { capacity: rowCapacity, tables: [keys.table] }),
        rowCapacity,
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
  return relativeError(readResult(bench, result, kind, heads * valueWidth), expected);
}

/** Of all rows that there are. */
function readResult(
  bench: Workbench,
  result: BufferSlice,
  kind: keyof typeof readers,
  width: number,
): Float32Array {
  if (kind === "int8") return readCodes(bench, result, rowCapacity, rowCount, width);
  if (kind === "float") return bench.read(result, rowCount * width);
  return readHalves(bench, result, { rows: rowCount, width, capacity: rowCapacity, tiled: true });
}

/** Queries as `ropeCache` leaves them: scrambled, if keys are. Every `stride`-th head is one. */
export function asKeysAre(
  { key }: KvTypes,
  query: Float32Array,
  headWidth: number,
  stride: number,
): Float32Array {
  if (!isScrambled(key)) return query;
  const result = query.slice();
  for (let start = 0; start < query.length; start += stride * headWidth) {
    result.set(scramble(query.subarray(start, start + headWidth)), start);
  }
  return result;
}

function describe({ position, splits, ...input }: AttentionInput): string {
  const extras = Object.entries(input).map(([name, value]) => `${name} ${value}`);
  return [`${position + 1} keys`, `${splits} splits`, ...extras].join(", ");
}

/** The rounding of what is written. */
const bounds = { float: 1e-5, int8: 0.05, tile: 2e-3 } as const;

export const attentionCases: readonly VerifyCase[] = reductions.flatMap(
  ({ variant, force, ...rest }) =>
    [...inputs, ...(variant === "subgroup" ? subgroupInputs : [])].map((input) => ({
      kernel: "attention",
      variant,
      name: describe(input),
      bound: bounds[input.result ?? "float"],
      ...rest,
      run: (bench: Workbench) => run(bench, input, force),
    })),
);
