/** The free list of cache blocks: numbers only. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/errors.ts";
import { KvBlocks } from "../../src/engine/kv-blocks.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

describe("blocks", () => {
  test("are handed out from the lowest number on", () => {
    const blocks = new KvBlocks(4);
    expect([blocks.allocate(1), blocks.allocate(2)]).toEqual([[0], [1, 2]]);
    expect([blocks.freeCount, blocks.blockCount]).toEqual([1, 4]);
  });

  test("that were given back come first, in the order that they had", () => {
    const blocks = new KvBlocks(4);
    const [first, second] = [blocks.allocate(2), blocks.allocate(1)];
    blocks.release(first);
    expect(blocks.allocate(3)).toEqual([0, 1, 3]);
    blocks.release(second);
    expect(blocks.allocate(1)).toEqual([2]);
  });

  test("may be asked for before they are taken", () => {
    const blocks = new KvBlocks(2);
    expect([blocks.canAllocate(2), blocks.canAllocate(3)]).toEqual([true, false]);
    blocks.allocate(2);
    expect([blocks.canAllocate(0), blocks.canAllocate(1)]).toEqual([true, false]);
    expect(() => blocks.allocate(1)).toThrow(new InvariantError("1 blocks of 0 free ones"));
    expect(blocks.freeCount).toBe(0);
  });

  test("none are none", () => {
    const blocks = new KvBlocks(1);
    expect(blocks.allocate(0)).toEqual([]);
    blocks.release([]);
    expect(blocks.freeCount).toBe(1);
    expect(new KvBlocks(0).canAllocate(1)).toBe(false);
  });

  test("released twice are a bug of ours", () => {
    const blocks = new KvBlocks(2);
    const taken = blocks.allocate(2);
    blocks.release(taken);
    expect(() => blocks.release(taken)).toThrow(new InvariantError("a block was released twice"));
  });

  test("never belong to two owners, whatever is taken and given back", () => {
    const random = new SeededRandom(3);
    const blocks = new KvBlocks(64);
    const owners: number[][] = [];
    for (let round = 0; round < 2000; round++) {
      const count = random.below(12);
      if (blocks.canAllocate(count) && random.below(2) === 0) owners.push(blocks.allocate(count));
      else if (owners.length > 0)
        blocks.release(owners.splice(random.below(owners.length), 1)[0] ?? []);
      const taken = owners.flat();
      expect(new Set(taken).size).toBe(taken.length);
      expect(taken.length + blocks.freeCount).toBe(64);
    }
  });
});
