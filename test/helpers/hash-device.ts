/**
 * A device that does what a step plan says with hashes in place of keys, values and state. The hash
 * behind a token depends on all tokens before it, so a row that reads another text's block, or a
 * state that went elsewhere, makes a wrong token. It looks at every position that a row can see.
 */
import { expect } from "bun:test";
import type { Run, StepPlan } from "../../src/engine/step-plan.ts";
import { latestToken } from "../../src/kernels/step.ts";
import type { CacheLimits } from "../../src/engine/paged-cache.ts";
import { blockTokens } from "../../src/kernels/step.ts";

export const vocabularySize = 300;

/** The hash behind a token. */
export function hashBehind(past: number, token: number): number {
  let x = Math.imul(past ^ (token + 0x9e3779b9), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

export function tokenOf(hash: number): number {
  return hash % vocabularySize;
}

export class HashDevice {
  /** [blocks, blockTokens] */
  readonly #cache: Uint32Array;
  /** Of sequences, then of checkpoints, then spare ones. */
  readonly #states: Uint32Array;
  readonly #tables: number[][];
  readonly #latest: number[];
  readonly #isRecurrent: boolean;

  constructor(limits: CacheLimits) {
    const { blockCount, sequenceCapacity, checkpointCapacity, spareCapacity = 0 } = limits;
    this.#cache = new Uint32Array(blockCount * blockTokens);
    this.#states = new Uint32Array(sequenceCapacity + (checkpointCapacity ?? 0) + spareCapacity);
    this.#tables = Array.from({ length: sequenceCapacity }, () => []);
    this.#latest = Array.from({ length: sequenceCapacity }, () => -1);
    this.#isRecurrent = checkpointCapacity !== undefined;
  }

  /** The tokens behind each row of the runs that wants one. */
  run({ copies, tables, rows, outputRows, runs }: StepPlan): number[][] {
    for (const { from, to } of copies.blocks) {
      const block = this.#cache.slice(from * blockTokens, (from + 1) * blockTokens);
      this.#cache.set(block, to * blockTokens);
    }
    for (const { from, to } of copies.states) this.#states.copyWithin(to, from, from + 1);
    for (const { slot, from, blocks } of tables) this.#tables[slot]?.splice(from, 1e9, ...blocks);
    expect(new Set(runs.map(({ slot }) => slot)).size).toBe(runs.length);
    expect(rows.length).toBe(runs.reduce((sum, { rowCount }) => sum + rowCount, 0));
    // All rows write before any reads, as kernels do.
    const hashes = runs.map((run) => this.#write(run, rows));
    const outputs = runs.filter(({ hasOutput }) => hasOutput);
    const wanted = outputs.flatMap(({ firstRow, rowCount, drafts }) =>
      [...drafts, 0].map((_draft, i) => firstRow + rowCount - 1 - drafts.length + i),
    );
    expect(outputRows).toEqual(wanted);
    runs.forEach((run, i) => this.#look(run, hashes[i] ?? []));
    return outputs.map((run) => {
      const tokens = (hashes[runs.indexOf(run)] ?? []).slice(-1 - run.drafts.length).map(tokenOf);
      this.#latest[run.slot] = tokens.at(-1) ?? -1;
      return tokens;
    });
  }

  /** Writes the rows of a run to the cache; the hash behind each of its positions from 0 on. */
  #write({ slot, position, firstRow, rowCount }: Run, rows: StepPlan["rows"]): number[] {
    const known = Array.from({ length: position }, (_unused, at) => this.#cacheAt(slot, at));
    for (let i = 0; i < rowCount; i++) {
      const row = rows[firstRow + i];
      expect(row).toMatchObject({ position: position + i, sequence: slot });
      const token = row?.token === latestToken ? this.#latest[slot] : row?.token;
      const hash = hashBehind(known.at(-1) ?? 0, token ?? -1);
      known.push(hash);
      this.#cache[this.#addressOf(slot, position + i)] = hash;
    }
    if (!this.#isRecurrent) return known;
    expect(position === 0 ? 0 : this.#states[slot]).toBe(known[position - 1] ?? 0);
    this.#states[slot] = known.at(-1) ?? 0;
    return known;
  }

  /** Nobody else has written where this run reads. */
  #look({ slot }: Run, hashes: readonly number[]): void {
    const found = hashes.findIndex((hash, at) => this.#cacheAt(slot, at) !== hash);
    expect(found).toBe(-1);
  }

  #cacheAt(slot: number, position: number): number {
    return this.#cache[this.#addressOf(slot, position)] ?? -1;
  }

  #addressOf(slot: number, position: number): number {
    const block = this.#tables[slot]?.[Math.floor(position / blockTokens)];
    if (block === undefined) throw new Error(`slot ${slot} has no block at ${position}`);
    return block * blockTokens + (position % blockTokens);
  }
}
