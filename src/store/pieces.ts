/** Which bytes of a file are there, and who fetches which of the others. Pure. */
import { invariant } from "../errors.ts";
import { ceilDiv, roundUp } from "../math.ts";

export interface Piece {
  readonly index: number;
  /** Of the whole piece, in the file. */
  readonly start: number;
  readonly end: number;
  /** Bytes from its start on that are there. */
  doneBytes: number;
}

const mebibyte = 1 << 20;
/** More would make the end of a download, when only some pieces are left, slow. */
const pieceBytesMax = 64 * mebibyte;
/** A small file has this many, so that all connections have some. */
const piecesWanted = 32;
/** Of a file of any size: what a server claims must not fill the memory. */
const piecesMax = 1 << 16;

/** A size that depends on the file alone: pieces must be the same when a download goes on. */
export function pieceBytesOf(sizeBytes: number): number {
  const wanted = roundUp(ceilDiv(sizeBytes, piecesWanted), mebibyte);
  const usual = Math.min(Math.max(wanted, mebibyte), pieceBytesMax);
  return Math.max(usual, roundUp(ceilDiv(sizeBytes, piecesMax), mebibyte));
}

export class Pieces {
  readonly all: readonly Piece[];
  readonly #free: Piece[];

  /** `done` has the bytes that are there already, by the index of their piece. */
  constructor(
    sizeBytes: number,
    pieceBytes: number,
    done: ReadonlyMap<number, number> = new Map(),
  ) {
    const count = ceilDiv(sizeBytes, pieceBytes);
    this.all = Array.from({ length: count }, (_unused, index) => {
      const start = index * pieceBytes;
      const end = Math.min(start + pieceBytes, sizeBytes);
      return { index, start, end, doneBytes: Math.min(done.get(index) ?? 0, end - start) };
    });
    this.#free = this.all.filter((piece) => !isComplete(piece));
  }

  /** The first piece that is incomplete and nobody else's; give it back if it stays so. */
  take(): Piece | undefined {
    return this.#free.shift();
  }

  giveBack(piece: Piece): void {
    invariant(!this.#free.includes(piece), `piece ${piece.index} was not taken`);
    if (isComplete(piece)) return;
    this.#free.push(piece);
    this.#free.sort((a, b) => a.index - b.index);
  }

  get doneBytes(): number {
    return this.all.reduce((sum, piece) => sum + piece.doneBytes, 0);
  }

  /** Behind the last byte that is there. */
  get lastByte(): number {
    const begun = this.all.findLast(({ doneBytes }) => doneBytes > 0);
    return begun === undefined ? 0 : begun.start + begun.doneBytes;
  }
}

function isComplete({ start, end, doneBytes }: Piece): boolean {
  return doneBytes === end - start;
}
