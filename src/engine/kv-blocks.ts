/** Which blocks of the paged cache are free: numbers only. */
import { invariant } from "../errors.ts";

export class KvBlocks {
  readonly blockCount: number;
  /** Taken from the end; the lowest number comes first. */
  readonly #free: number[];

  constructor(blockCount: number) {
    this.blockCount = blockCount;
    this.#free = Array.from({ length: blockCount }, (_unused, i) => blockCount - 1 - i);
  }

  get freeCount(): number {
    return this.#free.length;
  }

  canAllocate(count: number): boolean {
    return count <= this.#free.length;
  }

  allocate(count: number): number[] {
    invariant(this.canAllocate(count), `${count} blocks of ${this.#free.length} free ones`);
    return this.#free.splice(this.#free.length - count).toReversed();
  }

  release(blocks: readonly number[]): void {
    this.#free.push(...blocks.toReversed());
    invariant(this.#free.length <= this.blockCount, "a block was released twice");
  }
}
