/** An index from the bytes of a token to its id, made in one pass over a vocabulary. */
import type { StringArray } from "../gguf/metadata.ts";
import { hashBytes, hashSeed, slotCount, spread } from "./byte-hash.ts";
import { packStrings } from "./packed-strings.ts";

export class TokenTable {
  readonly count: number;
  /** All tokens, one after the other; token `id` lies between `start(id)` and `end(id)`. */
  readonly bytes: Uint8Array;
  /** The length of the longest token. */
  readonly longestBytes: number;
  readonly #starts: Uint32Array;
  readonly #hashes: Int32Array;
  /** Open addressing; holds id + 1, so that 0 is free. */
  readonly #slots: Int32Array;

  constructor(tokens: StringArray) {
    const { count, bytes, starts } = packStrings(tokens);
    const hashes = new Int32Array(count);
    let longest = 0;
    for (let id = 0; id < count; id++) {
      const start = starts[id] as number;
      const end = starts[id + 1] as number;
      hashes[id] = hashBytes(hashSeed, bytes, start, end);
      longest = Math.max(longest, end - start);
    }
    this.count = count;
    this.bytes = bytes;
    this.longestBytes = longest;
    this.#starts = starts;
    this.#hashes = hashes;
    this.#slots = new Int32Array(slotCount(count));
    this.#fillSlots();
  }

  start(id: number): number {
    return this.#starts[id] ?? 0;
  }

  end(id: number): number {
    return this.#starts[id + 1] ?? 0;
  }

  /** The hash of the token's bytes, as `hashBytes` makes it. */
  hash(id: number): number {
    return this.#hashes[id] ?? 0;
  }

  /** The bytes of a token as they stand in the file; empty for an id outside the vocabulary. */
  bytesOf(id: number): Uint8Array {
    if (id < 0 || id >= this.count) return new Uint8Array(0);
    return this.bytes.subarray(this.start(id), this.end(id));
  }

  /** Whether these are the bytes of the token. */
  equals(id: number, bytes: Uint8Array, start: number, end: number): boolean {
    const at = this.start(id);
    return this.end(id) - at === end - start && this.#equals(at, bytes, start, end);
  }

  /** The lowest id of the token with these bytes, or -1. An empty token is never found. */
  find(bytes: Uint8Array, start: number, end: number): number {
    return this.#find(hashBytes(hashSeed, bytes, start, end), bytes, start, end, end, end);
  }

  /** As `find`, of two ranges read as one. */
  findJoined(bytes: Uint8Array, start: number, end: number, start2: number, end2: number): number {
    const hash = hashBytes(hashBytes(hashSeed, bytes, start, end), bytes, start2, end2);
    return this.#find(hash, bytes, start, end, start2, end2);
  }

  #find(
    hash: number,
    bytes: Uint8Array,
    start: number,
    end: number,
    start2: number,
    end2: number,
  ): number {
    const mask = this.#slots.length - 1;
    const length = end - start;
    for (let slot = spread(hash) & mask; ; slot = (slot + 1) & mask) {
      const id = (this.#slots[slot] as number) - 1;
      if (id < 0) return -1;
      if (this.#hashes[id] !== hash) continue;
      const at = this.start(id);
      if (this.end(id) - at !== length + end2 - start2) continue;
      if (!this.#equals(at, bytes, start, end)) continue;
      if (this.#equals(at + length, bytes, start2, end2)) return id;
    }
  }

  #equals(at: number, bytes: Uint8Array, start: number, end: number): boolean {
    for (let i = start; i < end; i++) if (this.bytes[at + i - start] !== bytes[i]) return false;
    return true;
  }

  #fillSlots(): void {
    const slots = this.#slots;
    const hashes = this.#hashes;
    const mask = slots.length - 1;
    for (let id = 0; id < this.count; id++) {
      if (this.start(id) === this.end(id)) continue;
      const hash = hashes[id] as number;
      let slot = spread(hash) & mask;
      let other = slots[slot] as number;
      // A token that is spelled like an earlier one is only ever decoded.
      while (other !== 0 && !(hashes[other - 1] === hash && this.#sameBytes(other - 1, id))) {
        slot = (slot + 1) & mask;
        other = slots[slot] as number;
      }
      if (other === 0) slots[slot] = id + 1;
    }
  }

  #sameBytes(one: number, two: number): boolean {
    return this.equals(one, this.bytes, this.start(two), this.end(two));
  }
}
