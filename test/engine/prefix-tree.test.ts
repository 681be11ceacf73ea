/** Known prefixes: what is found, what is shared, what goes first. */
import { describe, expect, test } from "bun:test";
import { BlockPool } from "../../src/engine/block-pool.ts";
import { PrefixTree, type PrefixNode } from "../../src/engine/prefix-tree.ts";
import { InvariantError } from "../../src/errors.ts";

/** 32 tokens that begin with one of their own. */
const full = (first: number) => Array.from({ length: 32 }, (_unused, i) => first * 100 + i);

/** A tree to which texts are added block by block. */
function planted(blockCount = 16) {
  const pool = new BlockPool(blockCount);
  const tree = new PrefixTree(pool);
  /** The nodes of a text that is complete: nobody holds them. */
  const add = (...blocks: readonly (readonly number[])[]): PrefixNode[] => {
    const path: PrefixNode[] = [];
    for (const tokens of blocks) {
      const own = pool.take();
      const { node, isNew } = tree.insert(path.at(-1), tokens, own);
      if (!isNew) {
        tree.hold(node);
        pool.release(own);
      }
      path.push(node);
    }
    for (const node of path.toReversed()) tree.letGo(node);
    return path;
  };
  return { pool, tree, add };
}

describe("a prefix", () => {
  test("is found block by block, and its end in the middle of one", () => {
    const { tree, add } = planted();
    const [a, b] = add(full(1), full(2));
    const text = [...full(1), ...full(2).slice(0, 20), 5, 6, 7];
    expect(tree.match(text, text.length, true)).toEqual({
      path: [a],
      tail: { node: b, count: 20 },
    } as never);
    expect(tree.match(text, text.length, false)).toEqual({ path: [a], tail: undefined } as never);
    expect(tree.match([...full(1), ...full(2)], 64, true)).toEqual({
      path: [a, b],
      tail: undefined,
    } as never);
  });

  test("ends at the limit, and is not copied for a few tokens", () => {
    const { tree, add } = planted();
    const [a, b] = add(full(1), full(2));
    const text = [...full(1), ...full(2)];
    expect(tree.match(text, 63, true)).toEqual({
      path: [a],
      tail: { node: b, count: 31 },
    } as never);
    expect(tree.match(text, 39, true).tail).toBeUndefined();
    expect(tree.match(text, 40, true).tail?.count).toBe(8);
    expect(tree.match(full(3), 32, true)).toEqual({ path: [], tail: undefined });
  });

  test("that two texts share has its blocks once", () => {
    const { pool, tree, add } = planted();
    const [a, b] = add(full(1), full(2));
    const [again, c] = add(full(1), full(3));
    expect([again === a, b === c]).toEqual([true, false]);
    expect([tree.nodeCount, tree.idleCount, pool.freeCount]).toEqual([3, 3, 13]);
  });

  test("with recurrent state ends where that is kept", () => {
    const { tree, add } = planted();
    const [a] = add(full(1), full(2));
    const text = [...full(1), ...full(2), 9];
    expect(tree.matchCheckpoint(text, 64, true).path).toEqual([]);
    if (a !== undefined) a.checkpoint = 0;
    expect(tree.matchCheckpoint(text, 64, true).path).toEqual([a] as never);
    const [, tail] = add(full(1), full(2).slice(0, 10));
    if (tail !== undefined) tail.checkpoint = 1;
    expect(tree.matchCheckpoint(text, 64, true)).toEqual({
      path: [a],
      tail: { node: tail, count: 10 },
    } as never);
    // All of the tail or nothing: there is no state in its middle.
    expect(tree.matchCheckpoint(text, 41, true).tail).toBeUndefined();
  });
});

describe("a block that is not full", () => {
  test("gives way to one that holds more of the same", () => {
    const { tree, add } = planted();
    add(full(1).slice(0, 12));
    add(full(1).slice(0, 20));
    expect([tree.nodeCount, tree.idleCount]).toEqual([1, 1]);
    expect(tree.covers(undefined, full(1).slice(0, 12))).toBe(true);
    expect(tree.covers(undefined, full(1))).toBe(false);
  });

  test("has nothing below it", () => {
    const { pool, tree, add } = planted();
    const [short] = add(full(1).slice(0, 12));
    const refusal = new InvariantError("nothing is below a block that is not full");
    expect(() => tree.insert(short, full(2), pool.take())).toThrow(refusal);
  });
});

describe("what goes first", () => {
  test("is what was not used for longest, the end of a text before its head", () => {
    const { tree, add } = planted();
    const [a, b] = add(full(1), full(2));
    const [c] = add(full(3));
    if (a === undefined) throw new Error("nothing was added");
    // Somebody uses the head of the first text again.
    tree.hold(a);
    tree.letGo(a);
    const order: (PrefixNode | undefined)[] = [];
    for (let node = tree.oldestIdle(); node !== undefined; node = tree.oldestIdle()) {
      order.push(node);
      tree.remove(node);
    }
    expect(order.map((node) => [b, c, a].indexOf(node))).toEqual([0, 1, 2]);
  });

  test("is nothing that is in use", () => {
    const { pool, tree, add } = planted();
    const [a, b] = add(full(1), full(2));
    if (a === undefined || b === undefined) throw new Error("nothing was added");
    tree.hold(a);
    tree.hold(b);
    expect([tree.idleCount, tree.oldestIdle()]).toEqual([0, undefined]);
    const refusal = new InvariantError("a prefix in use cannot be removed");
    expect(() => tree.remove(b)).toThrow(refusal);
    tree.letGo(b);
    tree.remove(b);
    expect([tree.nodeCount, pool.freeCount]).toEqual([1, 15]);
    expect(() => tree.remove(a)).toThrow(refusal);
  });
});
