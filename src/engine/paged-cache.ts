/**
 * The cache of keys and values and of recurrent state, as numbers: who has which block, what is
 * shared, what must be copied. Steps run in the order in which they were planned; so what is given
 * back can be given out again at once, though steps that use it are still on their way.
 */
import { invariant } from "../errors.ts";
import { blockTokens } from "../kernels/step.ts";
import { ceilDiv } from "../math.ts";
import { BlockPool } from "./block-pool.ts";
import { Checkpoints, type Copy } from "./checkpoints.ts";
import { PrefixTree, tailTokensMin, type PrefixNode } from "./prefix-tree.ts";
import { Residence } from "./residence.ts";

export interface CacheLimits {
  readonly blockCount: number;
  /** Sequences that there is a block table and state for. */
  readonly sequenceCapacity: number;
  /** Undefined for a model without recurrent layers. */
  readonly checkpointCapacity: number | undefined;
  /** Sequences with recurrent state that drafts can be verified for in one step; 0 by default. */
  readonly spareCapacity?: number | undefined;
}

export interface CacheCopies {
  /** None reads what another one writes. */
  readonly blocks: readonly Copy[];
  /**
   * Rows of the state: those of the sequences, then those of the checkpoints. One after the other.
   */
  readonly states: readonly Copy[];
}

/** Entries of a block table from `from` on. */
export interface TableChange {
  readonly slot: number;
  readonly from: number;
  readonly blocks: readonly number[];
}

export class PagedCache {
  readonly #pool: BlockPool;
  readonly #tree: PrefixTree;
  readonly #checkpoints: Checkpoints;
  readonly #isRecurrent: boolean;
  readonly #spareCount: number;
  #blockCopies: Copy[] = [];
  /** Nodes that blocks are copied from in the step that is being planned. */
  #sources: PrefixNode[] = [];

  constructor(limits: CacheLimits) {
    const { blockCount, sequenceCapacity, checkpointCapacity, spareCapacity = 0 } = limits;
    const slotCount = checkpointCapacity ?? 0;
    this.#pool = new BlockPool(blockCount);
    this.#tree = new PrefixTree(this.#pool);
    this.#checkpoints = new Checkpoints(this.#tree, sequenceCapacity, slotCount, spareCapacity);
    this.#isRecurrent = checkpointCapacity !== undefined;
    this.#spareCount = spareCapacity;
  }

  get freeCount(): number {
    return this.#pool.freeCount;
  }

  /** Blocks that only the prefix tree refers to. */
  get idleCount(): number {
    return this.#tree.idleCount;
  }

  /** Blocks that can be had without taking one from a sequence. */
  get availableCount(): number {
    return this.freeCount + this.idleCount;
  }

  /**
   * Lets a sequence in with what the tree knows of its tokens, if all of them fit and leave
   * `reserve` blocks. The last token is always computed: its logits are wanted. Unless it borrows,
   * all of them are.
   */
  enter(
    slot: number,
    tokens: readonly number[],
    reserve: number,
    borrows = true,
  ): Residence | undefined {
    const residence = new Residence(slot, borrows);
    for (const withTail of [true, false]) {
      this.#borrow(residence, tokens, withTail);
      const missing = ceilDiv(tokens.length, blockTokens) - residence.path.length;
      if (missing + reserve <= this.availableCount) return residence;
    }
    this.#giveBack(residence);
    return undefined;
  }

  /** Looks again at what the tree knows, for a sequence that has not begun. */
  refresh(residence: Residence, tokens: readonly number[]): void {
    invariant(!residence.hasBegun, "a sequence that has begun computes the rest itself");
    this.#borrow(residence, tokens, true);
  }

  /** Makes a sequence ready to write behind what it has borrowed. */
  begin(residence: Residence, tokens: readonly number[]): void {
    const { tail } = residence;
    if (tail !== undefined) {
      const copy = this.#take();
      if (copy === undefined) this.#borrow(residence, tokens, false);
      else {
        this.#blockCopies.push({ from: tail.node.block, to: copy });
        this.#sources.push(tail.node);
        residence.blocks.push(copy);
        residence.tail = undefined;
      }
    }
    residence.hasBegun = true;
    const source = tail !== undefined && residence.tail === undefined ? tail.node : undefined;
    this.#restoreFrom(residence, source ?? residence.path.at(-1));
  }

  /** Takes blocks for the next `count` positions; says for how many there is room. */
  grow(residence: Residence, count: number): number {
    let room = residence.blocks.length * blockTokens - residence.length;
    while (room < count) {
      const block = this.#take();
      if (block === undefined) break;
      residence.blocks.push(block);
      room += blockTokens;
    }
    return Math.min(room, count);
  }

  /** Takes blocks for the first `length` positions, and says so; undefined if there are none. */
  reserve(residence: Residence, length: number): readonly TableChange[] | undefined {
    const count = Math.max(length - residence.length, 0);
    if (this.grow(residence, count) < count) return undefined;
    const change = this.takeTableChange(residence);
    return change === undefined ? [] : [change];
  }

  /** The next `count` positions will be written. */
  advance(residence: Residence, count: number): void {
    const { blocks, length } = residence;
    for (let i = Math.floor(length / blockTokens); i * blockTokens < length + count; i++) {
      const block = blocks[i];
      if (block === undefined) invariant(false, `position ${i * blockTokens} has no block`);
      const isShared = this.#pool.isShared(block);
      if (isShared) invariant(false, `block ${block} is shared and would be written`);
    }
    residence.length += count;
  }

  /**
   * Whether the next positions of a sequence can be taken back; what that takes is kept. A sequence
   * that went back to a mark still has it.
   */
  mark(residence: Residence): boolean {
    if (!this.#isRecurrent) return true;
    residence.spare ??= this.#checkpoints.saveSpare(residence.slot);
    return residence.spare !== undefined;
  }

  /** What was written since the mark stays. */
  unmark(residence: Residence): void {
    if (residence.spare !== undefined) this.#checkpoints.freeSpare(residence.spare);
    residence.spare = undefined;
  }

  /**
   * Takes back what was written since the mark at `marked`, from `length` on. False if that takes
   * back everything: states are no sums of positions, and what was right is computed again.
   */
  rewind(residence: Residence, marked: number, length: number): boolean {
    const { spare, slot } = residence;
    if (spare === undefined || length === residence.length) {
      this.unmark(residence);
      residence.length = length;
      return true;
    }
    this.#checkpoints.restoreSpare(spare, slot);
    residence.length = marked;
    return false;
  }

  /** Puts what is complete and known into the tree, where other sequences find it. */
  publish(residence: Residence, tokens: readonly number[]): void {
    const known = Math.min(residence.length, tokens.length);
    if (!this.#isRecurrent) {
      this.#insert(residence, tokens, known - (known % blockTokens));
      return;
    }
    for (let next = residence.held[0]; next !== undefined; next = residence.held[0]) {
      if (next.position > known) break;
      residence.held.shift();
      this.#insert(residence, tokens, next.position);
      this.#attach(residence, next.slot);
    }
  }

  /** Ends a stay. What it computed remains in the tree as long as nobody needs the room. */
  leave(residence: Residence, tokens: readonly number[]): void {
    if (residence.hasBegun) {
      this.publish(residence, tokens);
      this.#publishEnd(residence, tokens);
    }
    this.#giveBack(residence);
  }

  /** Keeps the state as it is at the sequence's length, at the end of a block. */
  checkpoint(residence: Residence): void {
    invariant(residence.length % blockTokens === 0, "a checkpoint within a block");
    const slot = this.#saveCheckpoint(residence);
    if (slot !== undefined) residence.held.push({ position: residence.length, slot });
  }

  /** What the device's block table lacks. */
  takeTableChange(residence: Residence): TableChange | undefined {
    const { slot, blocks, tableFrom } = residence;
    if (tableFrom >= blocks.length) return undefined;
    residence.tableFrom = blocks.length;
    return { slot, from: tableFrom, blocks: blocks.slice(tableFrom) };
  }

  /** What must be copied before the step that is being planned; the next ones are another's. */
  takeCopies(): CacheCopies {
    const copies = { blocks: this.#blockCopies, states: this.#checkpoints.takeCopies() };
    for (const node of this.#sources) this.#tree.letGo(node);
    [this.#blockCopies, this.#sources] = [[], []];
    return copies;
  }

  /** Forgets all prefixes that nobody uses. */
  clear(): void {
    while (this.#evict());
  }

  /** Counts everything again: what is referred to is as often referred to as it says. */
  check(residences: Iterable<Residence>): void {
    const counts = new Uint32Array(this.#pool.blockCount);
    let slotCount = this.#checkpoints.freeCount;
    let spareCount = this.#checkpoints.freeSpareCount;
    const count = (block: number) => (counts[block] = (counts[block] ?? 0) + 1);
    for (const { block, checkpoint } of this.#tree.nodes()) {
      count(block);
      if (checkpoint !== undefined) slotCount++;
    }
    for (const { blocks, path, tail, held, spare } of residences) {
      blocks.forEach(count);
      if (spare !== undefined) spareCount++;
      if (tail !== undefined) count(tail.node.block);
      invariant(
        path.every(({ block }, i) => block === blocks[i]),
        "a path beside its blocks",
      );
      slotCount += held.length;
    }
    for (const { block } of this.#sources) count(block);
    counts.forEach((expected, block) => {
      const found = this.#pool.referencesOf(block);
      invariant(found === expected, `block ${block} has ${found} references of ${expected}`);
    });
    invariant(counts.filter((n) => n === 0).length === this.freeCount, "a block is lost");
    invariant(slotCount === this.#checkpoints.slotCount, "a checkpoint is lost");
    invariant(spareCount === this.#spareCount, "a spare state is lost");
  }

  #take(): number | undefined {
    if (this.#pool.freeCount === 0 && !this.#evict()) return undefined;
    return this.#pool.take();
  }

  #evict(): boolean {
    const node = this.#tree.oldestIdle();
    if (node === undefined) return false;
    if (node.checkpoint !== undefined) this.#checkpoints.detach(node);
    this.#tree.remove(node);
    return true;
  }

  #borrow(residence: Residence, tokens: readonly number[], withTail: boolean): void {
    this.#giveBack(residence);
    if (!residence.borrows) return;
    const limit = tokens.length - 1;
    const { path, tail } = this.#isRecurrent
      ? this.#tree.matchCheckpoint(tokens, limit, withTail)
      : this.#tree.match(tokens, limit, withTail);
    for (const node of path) {
      this.#tree.hold(node);
      residence.path.push(node);
      residence.blocks.push(node.block);
    }
    if (tail !== undefined) this.#tree.hold(tail.node);
    residence.tail = tail;
    residence.length = path.length * blockTokens + (tail?.count ?? 0);
  }

  /** Lets go of all that a sequence holds, the last node of its path first. */
  #giveBack(residence: Residence): void {
    const { blocks, path, tail, held } = residence;
    if (tail !== undefined) this.#tree.letGo(tail.node);
    residence.tail = undefined;
    for (const block of blocks.splice(path.length)) this.#pool.release(block);
    for (const node of path.splice(0).reverse()) this.#tree.letGo(node);
    for (const { slot } of held.splice(0)) this.#checkpoints.giveBack(slot);
    this.unmark(residence);
    blocks.length = 0;
    residence.length = 0;
    residence.tableFrom = 0;
  }

  #restoreFrom(residence: Residence, node: PrefixNode | undefined): void {
    if (!this.#isRecurrent || node === undefined) return;
    invariant(node.checkpoint !== undefined, "a prefix without its state");
    this.#checkpoints.touch(node);
    this.#checkpoints.restore(node.checkpoint, residence.slot);
  }

  /** Puts blocks into the tree up to a position. Two that computed the same share one from then. */
  #insert(residence: Residence, tokens: readonly number[], end: number): void {
    const { path, blocks } = residence;
    for (let i = path.length; i * blockTokens < end; i++) {
      const own = blocks[i];
      invariant(own !== undefined, `block ${i} is not there to publish`);
      const content = tokens.slice(i * blockTokens, Math.min(end, (i + 1) * blockTokens));
      const { node, isNew } = this.#tree.insert(path.at(-1), content, own);
      if (!isNew) {
        this.#tree.hold(node);
        this.#pool.release(own);
        blocks[i] = node.block;
        residence.tableFrom = Math.min(residence.tableFrom, i);
      }
      path.push(node);
    }
  }

  /** A last block that is not full, and the state behind it. */
  #publishEnd(residence: Residence, tokens: readonly number[]): void {
    const { length, path } = residence;
    const known = Math.min(length, tokens.length);
    const start = path.length * blockTokens;
    if (!this.#isRecurrent) {
      const rest = tokens.slice(start, known);
      if (rest.length < tailTokensMin || this.#tree.covers(path.at(-1), rest)) return;
      this.#insert(residence, tokens, known);
      return;
    }
    // The state is that behind all rows, also of those whose tokens are not known.
    if (known < length || known - start < blockTokens) return;
    const slot = this.#saveCheckpoint(residence);
    if (slot === undefined) return;
    this.#insert(residence, tokens, known);
    this.#attach(residence, slot);
  }

  /** Gives the last node of a path its checkpoint. */
  #attach(residence: Residence, slot: number): void {
    const node = residence.path.at(-1);
    invariant(node !== undefined, "a checkpoint without tokens");
    if (this.#checkpoints.attach(slot, node)) residence.made.push(node);
  }

  /** One sequence alone never takes more than half of the slots. */
  #saveCheckpoint(residence: Residence): number | undefined {
    residence.made = residence.made.filter(({ checkpoint }) => checkpoint !== undefined);
    const { made, held } = residence;
    if (made.length + held.length >= Math.max(1, Math.floor(this.#checkpoints.slotCount / 2))) {
      const oldest = made.shift();
      if (oldest === undefined) return undefined;
      this.#checkpoints.drop(oldest);
    }
    return this.#checkpoints.save(residence.slot);
  }
}
