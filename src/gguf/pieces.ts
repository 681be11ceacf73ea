/**
 * The start of a source in memory, loaded piece by piece as far as it is asked for. Pieces are
 * never moved, so a header of any length takes its own size once: memory that is touched the first
 * time is what costs here.
 */
import { invariant } from "../errors.ts";
import type { ByteSource } from "./source.ts";

const pieceBytes = 2 ** 18;

export class Pieces {
  readonly #source: ByteSource;
  readonly #pieces: Uint8Array<ArrayBuffer>[] = [];

  constructor(source: ByteSource) {
    this.#source = source;
  }

  /** Loads everything before `end`, which must not lie behind the end of the source. */
  loadTo(end: number): void {
    while (this.#pieces.length * pieceBytes < end) {
      const start = this.#pieces.length * pieceBytes;
      const piece = new Uint8Array(Math.min(pieceBytes, this.#source.sizeBytes - start));
      this.#source.readIntoSync(piece, start);
      this.#pieces.push(piece);
    }
  }

  /** The loaded piece that holds `position`, and where it starts. */
  pieceAt(position: number): { readonly piece: Uint8Array<ArrayBuffer>; readonly start: number } {
    const index = Math.floor(position / pieceBytes);
    const piece = this.#pieces[index];
    invariant(piece !== undefined, `byte ${position} of ${this.#source.name} is not loaded`);
    return { piece, start: index * pieceBytes };
  }

  /** The loaded bytes from `from` up to `to`: a view if one piece holds them, else a copy. */
  bytes(from: number, to: number): Uint8Array {
    if (from === to) return new Uint8Array(0);
    const { piece, start } = this.pieceAt(from);
    if (to - start <= piece.length) return piece.subarray(from - start, to - start);
    return this.copy(from, to);
  }

  /** A copy of the loaded bytes from `from` up to `to`, at the start of its own buffer. */
  copy(from: number, to: number): Uint8Array<ArrayBuffer> {
    const result = new Uint8Array(to - from);
    for (let at = from; at < to;) {
      const { piece, start } = this.pieceAt(at);
      const part = piece.subarray(at - start, to - start);
      result.set(part, at - from);
      at += part.length;
    }
    return result;
  }
}
