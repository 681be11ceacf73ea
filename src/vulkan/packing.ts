/**
 * How buffers of known sizes are packed into few large allocations. Numbers only; used to plan and
 * to allocate.
 */
import { invariant } from "../errors.ts";
import { roundUp } from "../math.ts";

export interface Placement {
  readonly blockIndex: number;
  readonly offset: number;
}

export interface Packing {
  /** Bytes of each allocation. */
  readonly blocks: readonly number[];
  /** Where each of the sizes lies, in their order. */
  readonly placements: readonly Placement[];
}

/** First fit in the given order: neighbours stay neighbours. No block exceeds `blockBytesMax`. */
export function pack(sizes: readonly number[], alignment: number, blockBytesMax: number): Packing {
  const blocks: number[] = [];
  const placements = sizes.map((byteSize) => {
    invariant(byteSize <= blockBytesMax, `${byteSize} bytes exceed a block of ${blockBytesMax}`);
    const last = blocks.length - 1;
    const offset = roundUp(blocks[last] ?? 0, alignment);
    if (last >= 0 && offset + byteSize <= blockBytesMax) {
      blocks[last] = offset + byteSize;
      return { blockIndex: last, offset };
    }
    blocks.push(byteSize);
    return { blockIndex: last + 1, offset: 0 };
  });
  // Whole steps, unless the last one would exceed what a device can allocate.
  const sizeOf = (byteSize: number) =>
    Math.min(roundUp(Math.max(byteSize, 1), alignment), blockBytesMax);
  return { blocks: blocks.map(sizeOf), placements };
}
