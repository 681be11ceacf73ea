/** Strings of a metadata array, left where they are in the header, with a table of positions. */
import type { Cursor } from "./cursor.ts";
import { limits } from "./limits.ts";
import type { StringArray } from "./metadata.ts";
import type { Pieces } from "./pieces.ts";
import { decodeText, readLength } from "./text.ts";

/** Reads `count` strings, whose number has been checked against the bytes that are left. */
export function readStringArray(cursor: Cursor, count: number, subject: string): StringArray {
  const starts = new Uint32Array(count + 1);
  for (let i = 0; i < count; i++) {
    starts[i] = cursor.skip(readLength(cursor, limits.stringBytes, subject));
  }
  starts[count] = cursor.offset + cursor.countBytes;
  return new PackedStrings(cursor.pieces, starts, cursor.countBytes);
}

/** Positions of strings in the header's own bytes. */
class PackedStrings implements StringArray {
  readonly #pieces: Pieces;
  /** Where string i starts; it ends where the length of the next one begins. */
  readonly #starts: Uint32Array;
  readonly #lengthBytes: number;

  constructor(pieces: Pieces, starts: Uint32Array, lengthBytes: number) {
    this.#pieces = pieces;
    this.#starts = starts;
    this.#lengthBytes = lengthBytes;
  }

  get length(): number {
    return this.#starts.length - 1;
  }

  at(index: number): string {
    return decodeText(this.bytesAt(index));
  }

  bytesAt(index: number): Uint8Array {
    const start = this.#starts[index];
    const next = this.#starts[index + 1];
    if (start === undefined || next === undefined) {
      throw new RangeError(`string ${index} of ${this.length}`);
    }
    return this.#pieces.bytes(start, next - this.#lengthBytes);
  }
}
