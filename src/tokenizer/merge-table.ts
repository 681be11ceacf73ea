/**
 * The merges of a byte-pair vocabulary as rules on pairs of tokens: the earlier in the list, the
 * sooner applied. There are up to half a million and a text needs a few thousand, so at first they
 * are only hashed; which tokens a merge joins is looked up when it is first met.
 */
import { UserError } from "../errors.ts";
import type { StringArray } from "../gguf/metadata.ts";
import { hashBytes, hashSeed, slotCount, spread } from "./byte-hash.ts";
import { packStrings } from "./packed-strings.ts";
import { rankLimit, type MergeRules } from "./symbol-merger.ts";
import type { TokenTable } from "./token-table.ts";

const space = 0x20;

/** How many merges are looked at closely when the table is made. */
const sampleCount = 256;

export class MergeTable implements MergeRules {
  readonly count: number;
  readonly #tokens: TokenTable;
  readonly #bytes: Uint8Array;
  readonly #starts: Uint32Array;
  /** How many bytes the left half has, which a space follows. */
  readonly #leftBytes: Uint16Array;
  readonly #hashes: Int32Array;
  /** Open addressing over the hashes; holds rule + 1, so that 0 is free. */
  readonly #slots: Int32Array;
  /** The results of the merges that have been met. */
  readonly #joined = new Map<number, number>();

  constructor(merges: StringArray, tokens: TokenTable) {
    const { count, bytes, starts } = packStrings(merges);
    if (count >= rankLimit) {
      throw new UserError(
        "model",
        `tokenizer.ggml.merges has ${count} entries, more than ${rankLimit}`,
      );
    }
    this.count = count;
    this.#tokens = tokens;
    this.#bytes = bytes;
    this.#starts = starts;
    this.#leftBytes = new Uint16Array(count);
    this.#hashes = new Int32Array(count);
    this.#slots = new Int32Array(slotCount(count));
    this.#hashHalves();
    this.#fillSlots();
  }

  find(left: number, right: number): number {
    if (left < 0 || right < 0) return -1;
    const hash = hashPair(this.#tokens.hash(left), this.#tokens.hash(right));
    const mask = this.#slots.length - 1;
    for (let slot = spread(hash) & mask; ; slot = (slot + 1) & mask) {
      const rule = (this.#slots[slot] as number) - 1;
      if (rule < 0) return -1;
      if (this.#hashes[rule] !== hash || !this.#joins(rule, left, right)) continue;
      return this.token(rule) < 0 ? -1 : rule;
    }
  }

  rank(rule: number): number {
    return rule;
  }

  token(rule: number): number {
    let joined = this.#joined.get(rule);
    if (joined === undefined) {
      const { start, cut, end } = this.#parts(rule);
      joined = this.#tokens.findJoined(this.#bytes, start, cut, cut + 1, end);
      this.#joined.set(rule, joined);
    }
    return joined;
  }

  /** How many of some merges, picked evenly, name what is no token, and so can never apply. */
  brokenInSample(): { readonly broken: number; readonly of: number } {
    const of = Math.min(this.count, sampleCount);
    let broken = 0;
    for (let i = 0; i < of; i++) {
      const rule = Math.floor((i * this.count) / of);
      const { start, cut, end } = this.#parts(rule);
      if (!this.#isMerge(start, cut, end)) broken++;
    }
    return { broken, of };
  }

  #hashHalves(): void {
    const bytes = this.#bytes;
    for (let rule = 0; rule < this.count; rule++) {
      const start = this.#starts[rule] as number;
      const end = this.#starts[rule + 1] as number;
      const cut = this.#findCut(start, end);
      const leftHash = hashBytes(hashSeed, bytes, start, cut);
      this.#leftBytes[rule] = cut - start;
      this.#hashes[rule] = hashPair(leftHash, hashBytes(hashSeed, bytes, cut + 1, end));
    }
  }

  #fillSlots(): void {
    const slots = this.#slots;
    const mask = slots.length - 1;
    for (let rule = 0; rule < this.count; rule++) {
      let slot = spread(this.#hashes[rule] as number) & mask;
      // A pair that comes twice is found where it came first.
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = rule + 1;
    }
  }

  /** The space between the halves; `end` if there is none. */
  #findCut(start: number, end: number): number {
    const first = this.#nextSpace(start + 1, end);
    if (this.#nextSpace(first + 1, end) === end) return first;
    // Halves that hold spaces themselves: the cut that makes tokens of both and of the whole.
    for (let cut = first; cut < end; cut = this.#nextSpace(cut + 1, end)) {
      if (this.#isMerge(start, cut, end)) return cut;
    }
    return first;
  }

  #nextSpace(from: number, end: number): number {
    let at = from;
    while (at < end && this.#bytes[at] !== space) at++;
    return Math.min(at, end);
  }

  #isMerge(start: number, cut: number, end: number): boolean {
    const tokens = this.#tokens;
    const bytes = this.#bytes;
    return (
      tokens.findJoined(bytes, start, cut, cut + 1, end) >= 0 &&
      tokens.find(bytes, start, cut) >= 0 &&
      tokens.find(bytes, cut + 1, end) >= 0
    );
  }

  /** Whether a merge is of these two tokens: the hash alone does not prove it. */
  #joins(rule: number, left: number, right: number): boolean {
    const tokens = this.#tokens;
    const { start, cut, end } = this.#parts(rule);
    return (
      tokens.equals(left, this.#bytes, start, cut) &&
      tokens.equals(right, this.#bytes, cut + 1, end)
    );
  }

  #parts(rule: number): { readonly start: number; readonly cut: number; readonly end: number } {
    const start = this.#starts[rule] as number;
    const cut = start + (this.#leftBytes[rule] as number);
    return { start, cut, end: Math.max(cut, this.#starts[rule + 1] as number) };
  }
}

function hashPair(leftHash: number, rightHash: number): number {
  return Math.imul(leftHash, 0x01000193) ^ rightHash;
}
