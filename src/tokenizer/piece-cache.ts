/**
 * Remembers the ids of pieces of text, for most words of a text come again. Pieces are kept as
 * copied bytes: a map of strings would keep the long texts alive that the pieces were cut from.
 */
import { hashBytes, hashSeed, spread } from "./byte-hash.ts";

/** Enough for the words of a long text. Slots are twice as many. */
const piecesMax = 1 << 16;
const slotsMask = piecesMax * 2 - 1;

/** Long pieces seldom come again, and would fill the memory. */
const pieceBytesMax = 64;

const bytesMax = piecesMax * 12;
const idsMax = piecesMax * 6;

export class PieceCache {
  /** Allocated with the first piece; holds entry + 1, so that 0 is free. */
  #slots = new Int32Array(0);
  #hashes = new Int32Array(0);
  #bytes = new Uint8Array(0);
  #bytesEnd = new Int32Array(0);
  #ids = new Int32Array(0);
  #idsEnd = new Int32Array(0);
  #count = 0;

  /** Appends the ids of a known piece to `out`; false for an unknown one. */
  append(piece: Uint8Array, length: number, out: number[]): boolean {
    if (length > pieceBytesMax || this.#count === 0) return false;
    const hash = hashBytes(hashSeed, piece, 0, length);
    for (let slot = spread(hash) & slotsMask; ; slot = (slot + 1) & slotsMask) {
      const entry = (this.#slots[slot] as number) - 1;
      if (entry < 0) return false;
      if (this.#hashes[entry] !== hash || !this.#equals(entry, piece, length)) continue;
      const end = this.#idsEnd[entry] as number;
      for (let i = entry === 0 ? 0 : (this.#idsEnd[entry - 1] as number); i < end; i++) {
        out.push(this.#ids[i] as number);
      }
      return true;
    }
  }

  /** Remembers that a piece, unknown so far, became the ids in `out` from `start` on. */
  remember(piece: Uint8Array, length: number, out: readonly number[], start: number): void {
    if (length > pieceBytesMax) return;
    const entry = this.#makeRoom(length, out.length - start);
    const bytesStart = entry === 0 ? 0 : (this.#bytesEnd[entry - 1] as number);
    const idsStart = entry === 0 ? 0 : (this.#idsEnd[entry - 1] as number);
    for (let i = 0; i < length; i++) this.#bytes[bytesStart + i] = piece[i] as number;
    for (let i = start; i < out.length; i++) this.#ids[idsStart + i - start] = out[i] as number;
    this.#bytesEnd[entry] = bytesStart + length;
    this.#idsEnd[entry] = idsStart + out.length - start;
    const hash = hashBytes(hashSeed, piece, 0, length);
    this.#hashes[entry] = hash;
    let slot = spread(hash) & slotsMask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & slotsMask;
    this.#slots[slot] = entry + 1;
  }

  #equals(entry: number, piece: Uint8Array, length: number): boolean {
    const start = entry === 0 ? 0 : (this.#bytesEnd[entry - 1] as number);
    if ((this.#bytesEnd[entry] as number) - start !== length) return false;
    for (let i = 0; i < length; i++) if (this.#bytes[start + i] !== piece[i]) return false;
    return true;
  }

  /**
   * The number of the next entry. A full cache starts anew: that is rare, and needs no bookkeeping.
   */
  #makeRoom(byteCount: number, idCount: number): number {
    if (this.#slots.length === 0) this.#allocate();
    const last = this.#count - 1;
    const full =
      this.#count === piecesMax ||
      (this.#bytesEnd[last] ?? 0) + byteCount > bytesMax ||
      (this.#idsEnd[last] ?? 0) + idCount > idsMax;
    if (full) {
      this.#count = 0;
      this.#slots.fill(0);
    }
    return this.#count++;
  }

  #allocate(): void {
    this.#slots = new Int32Array(slotsMask + 1);
    this.#hashes = new Int32Array(piecesMax);
    this.#bytes = new Uint8Array(bytesMax);
    this.#bytesEnd = new Int32Array(piecesMax);
    this.#ids = new Int32Array(idsMax);
    this.#idsEnd = new Int32Array(piecesMax);
  }
}
