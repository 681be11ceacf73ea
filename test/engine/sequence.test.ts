/** How many blocks a sequence lacks. */
import { expect, test } from "bun:test";
import { Sequence } from "../../src/engine/sequence.ts";

test.each([
  [0, 0, 1, 1],
  [0, 0, 32, 1],
  [0, 0, 33, 2],
  [31, 1, 1, 0],
  [32, 1, 1, 1],
  [32, 1, 32, 1],
  [32, 1, 33, 2],
  [10, 4, 54, 0],
  [10, 1, 0, 0],
])("%d tokens in %d blocks and %d more need %d", (length, blockCount, count, expected) => {
  const sequence = new Sequence(3);
  sequence.length = length;
  sequence.blocks.push(...Array(blockCount).keys());
  expect(sequence.blocksNeeded(count, 32)).toBe(expected);
  expect(sequence.slot).toBe(3);
});
