/** Cache blocks and who refers to them: numbers only. */
import { describe, expect, test } from "bun:test";
import { BlockPool } from "../../src/engine/block-pool.ts";
import { InvariantError } from "../../src/errors.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

describe("blocks", () => {
  test("are handed out from the lowest number on, and the last one given back comes first", () => {
    const pool = new BlockPool(4);
    expect([pool.take(), pool.take(), pool.take()]).toEqual([0, 1, 2]);
    pool.release(1);
    expect([pool.freeCount, pool.take(), pool.take(), pool.freeCount]).toEqual([2, 1, 3, 0]);
    expect(() => pool.take()).toThrow(new InvariantError("no block is free"));
  });

  test("are free when nobody refers to them any more", () => {
    const pool = new BlockPool(2);
    const block = pool.take();
    pool.retain(block);
    expect([pool.referencesOf(block), pool.isShared(block)]).toEqual([2, true]);
    pool.release(block);
    expect([pool.isShared(block), pool.freeCount]).toEqual([false, 1]);
    pool.release(block);
    expect(pool.freeCount).toBe(2);
  });

  test("released twice, retained when free or not there at all are bugs of ours", () => {
    const pool = new BlockPool(2);
    expect(() => pool.release(0)).toThrow(new InvariantError("block 0 was released twice"));
    expect(() => pool.retain(1)).toThrow(
      new InvariantError("block 1 is free and cannot be retained"),
    );
    expect(() => pool.referencesOf(2)).toThrow(new InvariantError("there is no block 2"));
  });

  test("are never lost, whatever is taken, shared and given back", () => {
    const random = new SeededRandom(3);
    const pool = new BlockPool(32);
    const references: number[] = [];
    for (let round = 0; round < 5000; round++) {
      const choice = random.below(3);
      const some = references[random.below(references.length)];
      if (choice === 0 && pool.freeCount > 0) references.push(pool.take());
      else if (choice === 1 && some !== undefined) {
        pool.retain(some);
        references.push(some);
      } else if (some !== undefined) {
        references.splice(references.indexOf(some), 1);
        pool.release(some);
      }
      expect(new Set(references).size + pool.freeCount).toBe(32);
    }
  });
});
