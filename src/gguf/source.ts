/** Where bytes come from: a file (`file-source.ts`) or, as here, memory. Knows nothing of GGUF. */
import { invariant } from "../errors.ts";

/** Bytes with a name and a known size, read at any position. */
export interface ByteSource extends Disposable {
  /** As the user gave it: for messages. */
  readonly name: string;
  readonly sizeBytes: number;
  /**
   * Fills all of `target` with the bytes from `offsetBytes` on; the range must lie inside the
   * source. Throws `UserError` if the bytes cannot be had (any more).
   */
  readIntoSync(target: Uint8Array, offsetBytes: number): void;
  /** The same without blocking. Several may be in flight, each with its own target. */
  readInto(target: Uint8Array, offsetBytes: number): Promise<void>;
  /** Gives the source back, once the reads in flight are done. Reading afterwards is a bug. */
  close(): void;
}

/** Bytes that are in memory already, such as a model inside the executable. */
export class MemorySource implements ByteSource {
  readonly name: string;
  readonly #bytes: Uint8Array;

  constructor(name: string, bytes: Uint8Array) {
    this.name = name;
    this.#bytes = bytes;
  }

  get sizeBytes(): number {
    return this.#bytes.length;
  }

  readIntoSync(target: Uint8Array, offsetBytes: number): void {
    checkRange(this, target, offsetBytes);
    target.set(this.#bytes.subarray(offsetBytes, offsetBytes + target.length));
  }

  async readInto(target: Uint8Array, offsetBytes: number): Promise<void> {
    this.readIntoSync(target, offsetBytes);
  }

  close(): void {}

  [Symbol.dispose](): void {}
}

/** Asserts that a read stays inside its source. */
export function checkRange(source: ByteSource, target: Uint8Array, offsetBytes: number): void {
  const inside =
    Number.isSafeInteger(offsetBytes) &&
    offsetBytes >= 0 &&
    offsetBytes + target.length <= source.sizeBytes;
  invariant(inside, `read of ${target.length} bytes at ${offsetBytes} leaves ${source.name}`);
}
