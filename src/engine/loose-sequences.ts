/**
 * Sequences that somebody feeds by hand, beside the texts that are scheduled: they share the places
 * and the cache with these, and leave nothing in it.
 */
import type { PagedCache } from "./paged-cache.ts";
import type { Residence } from "./residence.ts";
import type { StepWork } from "./step-plan.ts";

export class LooseSequences {
  readonly #cache: PagedCache;
  readonly #freeSlots: number[];
  readonly #open = new Set<Residence>();

  /** `freeSlots`: shared with the scheduler; taken from the end. */
  constructor(cache: PagedCache, freeSlots: number[]) {
    this.#cache = cache;
    this.#freeSlots = freeSlots;
  }

  /** An empty sequence; undefined if all places are taken. */
  open(): Residence | undefined {
    const slot = this.#freeSlots.at(-1);
    const residence = slot === undefined ? undefined : this.#cache.enter(slot, [], 0);
    if (residence === undefined) return undefined;
    this.#freeSlots.pop();
    this.#cache.begin(residence, []);
    this.#open.add(residence);
    return residence;
  }

  /** A step that appends tokens to one sequence; undefined if the cache has no room for them. */
  plan(
    residence: Residence,
    tokens: readonly number[],
    outputRows: readonly number[],
  ): StepWork | undefined {
    if (this.#cache.grow(residence, tokens.length) < tokens.length) return undefined;
    const { slot: sequence, length } = residence;
    this.#cache.advance(residence, tokens.length);
    const table = this.#cache.takeTableChange(residence);
    return {
      copies: this.#cache.takeCopies(),
      tables: table === undefined ? [] : [table],
      rows: tokens.map((token, i) => ({ token, position: length + i, sequence })),
      outputRows,
    };
  }

  close(residence: Residence): void {
    this.#open.delete(residence);
    this.#cache.leave(residence, []);
    this.#freeSlots.push(residence.slot);
  }

  all(): Iterable<Residence> {
    return this.#open;
  }
}
