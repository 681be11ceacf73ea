/**
 * Recurrent state that is kept aside. The state has a row for each sequence, behind them one for
 * each slot here, and then the spares: what sequences go back to when drafts were wrong. When no
 * slot is free, the checkpoint that was not used for longest goes.
 */
import { invariant } from "../errors.ts";
import type { PrefixNode, PrefixTree } from "./prefix-tree.ts";

/** Of a block, or of the state of a sequence. */
export interface Copy {
  readonly from: number;
  readonly to: number;
}

export class Checkpoints {
  readonly slotCount: number;
  readonly #tree: PrefixTree;
  readonly #sequenceCapacity: number;
  /** Taken from the end; the lowest number comes first. */
  readonly #free: number[];
  readonly #owners = new Map<number, PrefixNode>();
  /** Rows of the state, taken from the end. */
  readonly #freeSpares: number[];
  #copies: Copy[] = [];

  constructor(tree: PrefixTree, sequenceCapacity: number, slotCount: number, spareCount: number) {
    this.#tree = tree;
    this.#sequenceCapacity = sequenceCapacity;
    this.slotCount = slotCount;
    this.#free = Array.from({ length: slotCount }, (_unused, i) => slotCount - 1 - i);
    const rows = sequenceCapacity + slotCount;
    this.#freeSpares = Array.from({ length: spareCount }, (_unused, i) => rows + i);
  }

  get freeCount(): number {
    return this.#free.length;
  }

  get freeSpareCount(): number {
    return this.#freeSpares.length;
  }

  /** Keeps the state of a sequence as it is behind all planned steps; says in which slot. */
  save(sequence: number): number | undefined {
    const oldest = this.#owners.values().next().value;
    if (this.#free.length === 0 && oldest !== undefined) this.drop(oldest);
    const slot = this.#free.pop();
    if (slot === undefined) return undefined;
    this.#copies.push({ from: sequence, to: this.#sequenceCapacity + slot });
    return slot;
  }

  /** Gives a sequence the state of a slot. */
  restore(slot: number, sequence: number): void {
    this.#copies.push({ from: this.#sequenceCapacity + slot, to: sequence });
  }

  /** Keeps the state of a sequence for a step that may have to be taken back; says where. */
  saveSpare(sequence: number): number | undefined {
    const row = this.#freeSpares.pop();
    if (row !== undefined) this.#copies.push({ from: sequence, to: row });
    return row;
  }

  /** Gives a sequence back what it had. */
  restoreSpare(row: number, sequence: number): void {
    this.#copies.push({ from: row, to: sequence });
  }

  /** Copies are made in order, so that it can be given out again at once. */
  freeSpare(row: number): void {
    invariant(!this.#freeSpares.includes(row), `spare state ${row} is not taken`);
    this.#freeSpares.push(row);
  }

  /** The slot is the node's, unless that has a checkpoint. False if so; then the slot is free. */
  attach(slot: number, node: PrefixNode): boolean {
    if (node.checkpoint !== undefined) {
      this.giveBack(slot);
      this.touch(node);
      return false;
    }
    node.checkpoint = slot;
    this.#owners.set(slot, node);
    return true;
  }

  /** Makes a node's checkpoint the last to go. */
  touch(node: PrefixNode): void {
    const slot = slotOf(node);
    this.#owners.delete(slot);
    this.#owners.set(slot, node);
  }

  /** Frees the slot of a node. */
  detach(node: PrefixNode): void {
    const slot = slotOf(node);
    node.checkpoint = undefined;
    this.#owners.delete(slot);
    this.giveBack(slot);
  }

  /** Frees the slot of a node, and the prefixes that lead to no checkpoint any more. */
  drop(node: PrefixNode): void {
    this.detach(node);
    let last: PrefixNode | undefined = node;
    while (last !== undefined && last.checkpoint === undefined && this.#tree.canRemove(last)) {
      this.#tree.remove(last);
      last = last.parent;
    }
  }

  /** Frees a slot that no node has. */
  giveBack(slot: number): void {
    invariant(!this.#owners.has(slot), `slot ${slot} has an owner`);
    invariant(slot < this.slotCount && !this.#free.includes(slot), `slot ${slot} is not taken`);
    this.#free.push(slot);
  }

  /** What is to be copied before the next step, one after the other. */
  takeCopies(): readonly Copy[] {
    const copies = this.#copies;
    this.#copies = [];
    return copies;
  }
}

function slotOf({ checkpoint }: PrefixNode): number {
  invariant(checkpoint !== undefined, "a prefix without a checkpoint");
  return checkpoint;
}
