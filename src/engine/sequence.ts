/** One text in the making: how many of its tokens the cache holds, and in which blocks. */
import { ceilDiv } from "../math.ts";

export class Sequence {
  /** Its row in the block tables. */
  readonly slot: number;
  readonly blocks: number[] = [];
  /** Tokens whose keys and values are in the cache; the position of the next one. */
  length = 0;

  constructor(slot: number) {
    this.slot = slot;
  }

  /** Blocks that are missing before `count` more tokens fit. */
  blocksNeeded(count: number, blockTokens: number): number {
    return Math.max(0, ceilDiv(this.length + count, blockTokens) - this.blocks.length);
  }
}
