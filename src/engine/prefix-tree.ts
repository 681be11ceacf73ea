/**
 * The prefixes that the cache remembers. A node is one block behind the blocks above it; a block
 * that is not full has nothing below it. Nobody writes a block that is in the tree: who goes on in
 * the middle of one takes a copy.
 *
 * The tree has one reference to each of its blocks, every sequence that uses one another. A
 * sequence that holds a node holds all above it.
 */
import { invariant } from "../errors.ts";
import { blockTokens } from "../kernels/step.ts";
import type { BlockPool } from "./block-pool.ts";

export interface PrefixNode {
  /** Undefined for the first block of a text. */
  readonly parent: PrefixNode | undefined;
  /** What the block holds, 1 to `blockTokens`. */
  readonly tokens: readonly number[];
  readonly block: number;
  readonly children: Map<string, PrefixNode>;
  /** The slot that keeps the recurrent state behind the last of the tokens. */
  checkpoint: number | undefined;
}

/** What is known of a text: full blocks, and perhaps the head of one more. */
export interface PrefixMatch {
  readonly path: readonly PrefixNode[];
  readonly tail: PrefixTail | undefined;
}

export interface PrefixTail {
  readonly node: PrefixNode;
  /** Positions of it that count. */
  readonly count: number;
}

/** For fewer tokens no block is copied: most texts share their first. */
export const tailTokensMin = 8;

export class PrefixTree {
  readonly #pool: BlockPool;
  readonly #roots = new Map<string, PrefixNode>();
  /**
   * Nodes that no sequence holds, the longest idle first. Sequences let go of their last node
   * first, so that the first one here has no children.
   */
  readonly #idle = new Set<PrefixNode>();
  #nodeCount = 0;

  constructor(pool: BlockPool) {
    this.#pool = pool;
  }

  get nodeCount(): number {
    return this.#nodeCount;
  }

  /** Blocks that could be had by eviction. */
  get idleCount(): number {
    return this.#idle.size;
  }

  /** The longest known head of some tokens, of at most `limit` of them. */
  match(tokens: readonly number[], limit: number, withTail: boolean): PrefixMatch {
    const path = this.#fullPath(tokens, limit);
    return { path, tail: withTail ? this.#longestTail(path, tokens, limit) : undefined };
  }

  /** As `match`, but it ends where the recurrent state is kept too; in a full block or not. */
  matchCheckpoint(tokens: readonly number[], limit: number, withTail: boolean): PrefixMatch {
    const path = this.#fullPath(tokens, limit);
    for (;;) {
      const tail = withTail ? this.#checkpointedTail(path, tokens, limit) : undefined;
      if (tail !== undefined) return { path, tail };
      if (path.length === 0 || path.at(-1)?.checkpoint !== undefined) break;
      path.pop();
    }
    return { path, tail: undefined };
  }

  /**
   * The node of `block` behind `parent`, or the one that already holds the same tokens. The caller
   * has a reference to the block: a new node is held.
   */
  insert(
    parent: PrefixNode | undefined,
    tokens: readonly number[],
    block: number,
  ): { node: PrefixNode; isNew: boolean } {
    invariant(
      tokens.length > 0 && tokens.length <= blockTokens,
      `a block of ${tokens.length} tokens`,
    );
    invariant(parent === undefined || isFull(parent), "nothing is below a block that is not full");
    const siblings = this.#childrenOf(parent);
    const key = keyOf(tokens);
    const known = siblings.get(key);
    if (known !== undefined) return { node: known, isNew: false };
    const node = { parent, tokens, block, children: new Map(), checkpoint: undefined };
    siblings.set(key, node);
    this.#pool.retain(block);
    this.#nodeCount++;
    this.#removeCovered(siblings, node);
    return { node, isNew: true };
  }

  /** Whether a text that goes on so behind `parent` would find all of it. */
  covers(parent: PrefixNode | undefined, tokens: readonly number[]): boolean {
    const siblings = [...this.#childrenOf(parent).values()];
    return siblings.some((node) => commonLength(node.tokens, tokens, 0) === tokens.length);
  }

  hold(node: PrefixNode): void {
    this.#idle.delete(node);
    this.#pool.retain(node.block);
  }

  /** Of several nodes of a path the last one goes first. */
  letGo(node: PrefixNode): void {
    this.#pool.release(node.block);
    if (!this.#pool.isShared(node.block)) this.#idle.add(node);
  }

  canRemove(node: PrefixNode): boolean {
    return this.#idle.has(node) && node.children.size === 0;
  }

  /** The node to remove next: the one that was not used for longest. */
  oldestIdle(): PrefixNode | undefined {
    return this.#idle.values().next().value;
  }

  /** Forgets a node that nobody holds and that has no children, and frees its block. */
  remove(node: PrefixNode): void {
    invariant(this.canRemove(node), "a prefix in use cannot be removed");
    this.#idle.delete(node);
    this.#childrenOf(node.parent).delete(keyOf(node.tokens));
    this.#pool.release(node.block);
    this.#nodeCount--;
  }

  /** All nodes, parents first. */
  *nodes(): Generator<PrefixNode, void> {
    const rest = [...this.#roots.values()];
    for (let node = rest.pop(); node !== undefined; node = rest.pop()) {
      yield node;
      rest.push(...node.children.values());
    }
  }

  #childrenOf(parent: PrefixNode | undefined): Map<string, PrefixNode> {
    return parent === undefined ? this.#roots : parent.children;
  }

  #fullPath(tokens: readonly number[], limit: number): PrefixNode[] {
    const path: PrefixNode[] = [];
    for (let end = blockTokens; end <= limit; end += blockTokens) {
      const key = keyOf(tokens.slice(end - blockTokens, end));
      const node = this.#childrenOf(path.at(-1)).get(key);
      if (node === undefined) break;
      path.push(node);
    }
    return path;
  }

  /** Who finds the new node has no use for one that holds less of the same. */
  #removeCovered(siblings: Map<string, PrefixNode>, { tokens }: PrefixNode): void {
    for (const other of siblings.values()) {
      if (other.tokens.length >= tokens.length || other.checkpoint !== undefined) continue;
      const isCovered = commonLength(other.tokens, tokens, 0) === other.tokens.length;
      if (isCovered && this.canRemove(other)) this.remove(other);
    }
  }

  #longestTail(
    path: readonly PrefixNode[],
    tokens: readonly number[],
    limit: number,
  ): PrefixTail | undefined {
    const start = path.length * blockTokens;
    let best: PrefixTail | undefined;
    for (const node of this.#childrenOf(path.at(-1)).values()) {
      const count = Math.min(commonLength(node.tokens, tokens, start), limit - start);
      if (count >= (best?.count ?? tailTokensMin - 1) + 1) best = { node, count };
    }
    return best;
  }

  #checkpointedTail(
    path: readonly PrefixNode[],
    tokens: readonly number[],
    limit: number,
  ): PrefixTail | undefined {
    const start = path.length * blockTokens;
    let best: PrefixTail | undefined;
    for (const node of this.#childrenOf(path.at(-1)).values()) {
      const count = node.tokens.length;
      if (node.checkpoint === undefined || isFull(node) || start + count > limit) continue;
      if (commonLength(node.tokens, tokens, start) < count) continue;
      if (best === undefined || count > best.count) best = { node, count };
    }
    return best;
  }
}

function isFull(node: PrefixNode): boolean {
  return node.tokens.length === blockTokens;
}

function keyOf(tokens: readonly number[]): string {
  return tokens.join(" ");
}

/** How many of `head` stand in `tokens` from `start` on. */
function commonLength(head: readonly number[], tokens: readonly number[], start: number): number {
  let count = 0;
  while (count < head.length && head[count] === tokens[start + count]) count++;
  return count;
}
