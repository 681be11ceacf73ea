/**
 * Layouts of work that were chosen by measurement. A kernel that can lay out its work in several
 * ways asks here, and says what would have to be measured; whoever measures listens.
 */
import { isDeepStrictEqual } from "node:util";
import { invariant } from "../errors.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import type { KernelContext } from "./kernel.ts";

/** Work on some of a model's weights, and the ways to lay it out. */
export interface Contest<T extends object = object> {
  /** All that tells it from work for which another layout may be best. */
  readonly key: string;
  /** Bytes of weights that it reads. */
  readonly weightBytes: number;
  /** Layouts that are right; the first is what the kernel would take unmeasured. */
  readonly candidates: readonly T[];
  /** Memory that it needs to run alone. */
  readonly inputBytes: number;
  readonly outputBytes: number;
  /** Appends the work in one of the layouts. */
  record(context: KernelContext, candidate: T, memory: ContestMemory): void;
  /** Floats that it has written. */
  results(memory: ContestMemory): BufferSlice;
}

/** More than any mixture has for a row. */
export const contestChoices = 64;

export interface ContestMemory {
  /** Floats between -1 and 1, not to be written. */
  readonly inputs: BufferSlice;
  readonly outputs: BufferSlice;
  /** The first `contestChoices` experts are chosen, as `expertChoice` would write it. */
  readonly choices: BufferSlice;
  /** A step of one row, which is an output. */
  readonly step: BufferSlice;
}

export class Tunings {
  readonly #chosen: Map<string, object>;
  #heard: Contest[] | undefined;

  constructor(chosen: Iterable<readonly [key: string, tuning: object]> = []) {
    this.#chosen = new Map(chosen);
  }

  /** The layout for some work: the measured one where there is one. */
  choose<T extends object>(contest: Contest<T>): T {
    const { key, candidates } = contest;
    this.#heard?.push(contest);
    const [usual] = candidates;
    invariant(usual !== undefined, `${key} has no layout`);
    return this.#find(contest) ?? usual;
  }

  /** Whether there is a measured layout for it. */
  knows(contest: Contest): boolean {
    return this.#find(contest) !== undefined;
  }

  set(key: string, tuning: object): void {
    this.#chosen.set(key, tuning);
  }

  /** All work that is asked about while `record` runs, in order. */
  listen(record: () => void): readonly Contest[] {
    const heard: Contest[] = [];
    this.#heard = heard;
    try {
      record();
    } finally {
      this.#heard = undefined;
    }
    return heard;
  }

  /** What was chosen once, by another version perhaps, may not be right any more. */
  #find<T extends object>({ key, candidates }: Contest<T>): T | undefined {
    const chosen = this.#chosen.get(key);
    return chosen && candidates.find((candidate) => isDeepStrictEqual(candidate, chosen));
  }
}
