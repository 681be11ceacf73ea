/**
 * The blocks of the paged cache: which are free, and how many refer to each of the others. Who they
 * are is not known here.
 */
import { invariant } from "../errors.ts";

export class BlockPool {
  readonly blockCount: number;
  readonly #references: Uint32Array;
  /** Taken from the end; the lowest number comes first. */
  readonly #free: number[];

  constructor(blockCount: number) {
    this.blockCount = blockCount;
    this.#references = new Uint32Array(blockCount);
    this.#free = Array.from({ length: blockCount }, (_unused, i) => blockCount - 1 - i);
  }

  get freeCount(): number {
    return this.#free.length;
  }

  referencesOf(block: number): number {
    const count = this.#references[block];
    if (count === undefined) invariant(false, `there is no block ${block}`);
    return count;
  }

  /** Others refer to it too: whoever wants to write takes a copy. */
  isShared(block: number): boolean {
    return this.referencesOf(block) > 1;
  }

  /** A free block, with one reference to it. */
  take(): number {
    const block = this.#free.pop();
    invariant(block !== undefined, "no block is free");
    this.#references[block] = 1;
    return block;
  }

  retain(block: number): void {
    const count = this.referencesOf(block);
    invariant(count > 0, `block ${block} is free and cannot be retained`);
    this.#references[block] = count + 1;
  }

  /** Takes a reference away; with the last one the block is free. */
  release(block: number): void {
    const count = this.referencesOf(block);
    invariant(count > 0, `block ${block} was released twice`);
    this.#references[block] = count - 1;
    if (count === 1) this.#free.push(block);
  }
}
