/**
 * The step that byte-pair encoding and SentencePiece share: neighbouring symbols are joined, best
 * rule first and leftmost among equals, until no rule applies. What a rule is, the caller says.
 */
import { MinHeap } from "./min-heap.ts";

/** Which neighbours may be joined. A rule is a non-negative integer. */
export interface MergeRules {
  /** The rule for two neighbours that span the bytes from `start` to `end`, or -1. */
  find(left: number, right: number, start: number, end: number): number;
  /** Rules of lower rank go first. An integer below `rankLimit`. */
  rank(rule: number): number;
  /** The token that a rule makes. */
  token(rule: number): number;
}

/** Rank and position share one float of the heap: 21 bits and 32 bits. */
export const rankLimit = 2 ** 21;
const positionLimit = 2 ** 32;

/** Up to so many symbols, scanning for the best rule is faster than keeping a heap. */
const scanLimit = 40;

const capacityMin = 256;

/** The memory of a longer text is not kept for the next one. */
const keptMax = 1 << 16;

export class SymbolMerger {
  /** Token of each symbol, or -1 where the vocabulary has none. */
  ids = new Int32Array(capacityMin);
  /** First byte of each symbol, and behind the last one the end of the text. */
  starts = new Int32Array(capacityMin + 1);
  count = 0;
  #rules = new Int32Array(capacityMin);
  #previous = new Int32Array(capacityMin);
  #next = new Int32Array(capacityMin);
  #heap = new MinHeap();

  /** Forgets the symbols and makes room for `capacity` new ones. */
  reset(capacity: number): void {
    this.count = 0;
    if (capacity <= this.ids.length && this.ids.length <= keptMax) return;
    const size = Math.max(capacity, capacityMin);
    this.ids = new Int32Array(size);
    this.starts = new Int32Array(size + 1);
    this.#rules = new Int32Array(size);
    this.#previous = new Int32Array(size);
    this.#next = new Int32Array(size);
    this.#heap = new MinHeap();
  }

  add(id: number, start: number): void {
    this.ids[this.count] = id;
    this.starts[this.count++] = start;
  }

  /** Joins the symbols added since `reset`, which reach to `end`. */
  merge(rules: MergeRules, end: number): void {
    this.starts[this.count] = end;
    if (this.count <= scanLimit) this.#mergeFew(rules);
    else this.#mergeMany(rules);
  }

  #mergeFew(rules: MergeRules): void {
    const { ids, starts } = this;
    const found = this.#rules;
    for (let i = 0; i + 1 < this.count; i++) this.#findBetween(rules, i, i + 1, i + 2);
    for (;;) {
      let best = -1;
      let bestRank = Infinity;
      for (let i = 0; i + 1 < this.count; i++) {
        const rule = found[i] as number;
        if (rule < 0) continue;
        const rank = rules.rank(rule);
        if (rank < bestRank) {
          best = i;
          bestRank = rank;
        }
      }
      if (best < 0) return;
      ids[best] = rules.token(found[best] as number);
      for (let i = best + 1; i < this.count; i++) {
        ids[i] = ids[i + 1] as number;
        starts[i] = starts[i + 1] as number;
        found[i] = found[i + 1] as number;
      }
      this.count--;
      if (best > 0) this.#findBetween(rules, best - 1, best, best + 1);
      if (best + 1 < this.count) this.#findBetween(rules, best, best + 1, best + 2);
    }
  }

  #mergeMany(rules: MergeRules): void {
    const heap = this.#heap;
    this.#link();
    heap.clear();
    for (let i = 0; i + 1 < this.count; i++) {
      this.#findBetween(rules, i, i + 1, i + 2);
      this.#enqueue(rules, i);
    }
    while (heap.length > 0) {
      const key = heap.pop();
      const rank = Math.floor(key / positionLimit);
      const left = key - rank * positionLimit;
      const rule = this.#rules[left] as number;
      // An entry is stale when its symbol is gone or has got another neighbour since.
      if (rule >= 0 && rules.rank(rule) === rank) this.#join(rules, left, rule);
    }
    this.#unlink();
  }

  /** Joins a symbol with the one to its right and looks at the new neighbours. */
  #join(rules: MergeRules, left: number, rule: number): void {
    const next = this.#next;
    const previous = this.#previous;
    const right = next[left] as number;
    const after = next[right] as number;
    this.ids[left] = rules.token(rule);
    this.#rules[left] = -1;
    this.#rules[right] = -1;
    next[left] = after;
    if (after < this.count) {
      previous[after] = left;
      this.#findBetween(rules, left, after, next[after] as number);
      this.#enqueue(rules, left);
    }
    const before = previous[left] as number;
    if (before < 0) return;
    this.#findBetween(rules, before, left, after);
    this.#enqueue(rules, before);
  }

  #enqueue(rules: MergeRules, left: number): void {
    const rule = this.#rules[left] as number;
    if (rule >= 0) this.#heap.push(rules.rank(rule) * positionLimit + left);
  }

  #findBetween(rules: MergeRules, left: number, right: number, after: number): void {
    const { ids, starts } = this;
    this.#rules[left] = rules.find(
      ids[left] as number,
      ids[right] as number,
      starts[left] as number,
      starts[after] as number,
    );
  }

  #link(): void {
    for (let i = 0; i < this.count; i++) {
      this.#next[i] = i + 1;
      this.#previous[i] = i - 1;
    }
    if (this.count > 0) this.#rules[this.count - 1] = -1;
  }

  /** Moves the symbols that are left to the front. */
  #unlink(): void {
    const { ids, starts, count } = this;
    let kept = 0;
    for (let i = 0; i < count; i = this.#next[i] as number) {
      ids[kept] = ids[i] as number;
      starts[kept++] = starts[i] as number;
    }
    starts[kept] = starts[count] as number;
    this.count = kept;
  }
}
