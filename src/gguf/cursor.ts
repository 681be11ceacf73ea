/**
 * Bounds-checked little-endian reading from the start of a source, which is loaded only as far as
 * it is read: a header costs its own size and never that of the file. What the fields mean is told
 * in `gguf.ts`.
 */
import { badFile, truncatedFile } from "./bad-file.ts";
import { limits } from "./limits.ts";
import { Pieces } from "./pieces.ts";
import type { ByteSource } from "./source.ts";

export class Cursor {
  readonly #source: ByteSource;
  /** Everything that has been read, for those who keep positions in place of bytes. */
  readonly pieces: Pieces;
  #offset = 0;
  /** Bytes around the offset, and where in the source they start and end. */
  #view = new DataView(new ArrayBuffer(0));
  #viewStart = 0;
  #viewEnd = 0;

  /** Bytes of a count or a string length: 4 in version 1, 8 since. */
  countBytes: 4 | 8 = 8;

  constructor(source: ByteSource) {
    this.#source = source;
    this.pieces = new Pieces(source);
  }

  /** The source's name, for messages. */
  get name(): string {
    return this.#source.name;
  }

  /** Bytes read so far, which is also the position in the source. */
  get offset(): number {
    return this.#offset;
  }

  u8(): number {
    const at = this.#advance(1);
    return this.#view.getUint8(at);
  }

  i8(): number {
    const at = this.#advance(1);
    return this.#view.getInt8(at);
  }

  u16(): number {
    const at = this.#advance(2);
    return this.#view.getUint16(at, true);
  }

  i16(): number {
    const at = this.#advance(2);
    return this.#view.getInt16(at, true);
  }

  u32(): number {
    const at = this.#advance(4);
    return this.#view.getUint32(at, true);
  }

  i32(): number {
    const at = this.#advance(4);
    return this.#view.getInt32(at, true);
  }

  f32(): number {
    const at = this.#advance(4);
    return this.#view.getFloat32(at, true);
  }

  u64(): bigint {
    const at = this.#advance(8);
    return this.#view.getBigUint64(at, true);
  }

  i64(): bigint {
    const at = this.#advance(8);
    return this.#view.getBigInt64(at, true);
  }

  f64(): number {
    const at = this.#advance(8);
    return this.#view.getFloat64(at, true);
  }

  /** An unsigned 64-bit integer as a number: exact up to 2^53 and rounded above. */
  size(): number {
    const at = this.#advance(8);
    return this.#view.getUint32(at, true) + this.#view.getUint32(at + 4, true) * 2 ** 32;
  }

  /** A count or a string length, as wide as the file's version has them; rounded above 2^53. */
  count(): number {
    return this.countBytes === 4 ? this.u32() : this.size();
  }

  /** The next bytes, to be read only. */
  bytes(byteCount: number): Uint8Array {
    const start = this.skip(byteCount);
    return this.pieces.bytes(start, start + byteCount);
  }

  /** Moves behind the next bytes, which are loaded, and returns where they start. */
  skip(byteCount: number): number {
    const start = this.#offset;
    const end = start + byteCount;
    if (end > this.#viewEnd) {
      this.ensure(byteCount);
      this.pieces.loadTo(end);
    }
    this.#offset = end;
    return start;
  }

  /** Throws unless the source has that many more bytes. Call it before allocating for a count. */
  ensure(byteCount: number): void {
    const needed = this.#offset + byteCount;
    const has = this.#source.sizeBytes;
    if (needed > has) throw truncatedFile(this.name, needed, has, true);
    if (needed > limits.headerBytes) {
      throw badFile(this.name, `the header is longer than ${limits.headerBytes} bytes`);
    }
  }

  /** As `skip`, for a number; returns where it is in the view, which this call may exchange. */
  #advance(byteCount: number): number {
    const start = this.skip(byteCount);
    if (this.#offset > this.#viewEnd) this.#look(start, this.#offset);
    return start - this.#viewStart;
  }

  /** Points the view to the piece that holds the range, or to a copy if two pieces share it. */
  #look(from: number, to: number): void {
    const { piece, start } = this.pieces.pieceAt(from);
    const isWhole = to <= start + piece.length;
    const bytes = isWhole ? piece : this.pieces.copy(from, to);
    this.#view = new DataView(bytes.buffer);
    this.#viewStart = isWhole ? start : from;
    this.#viewEnd = this.#viewStart + bytes.length;
  }
}
