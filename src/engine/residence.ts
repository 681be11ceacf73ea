/** What one sequence holds on the device while it is there: numbers of things, not the things. */
import type { PrefixNode, PrefixTail } from "./prefix-tree.ts";

export class Residence {
  /** Its row in the block tables, and of the recurrent state. */
  readonly slot: number;
  /** It borrows what the prefix tree knows. */
  readonly borrows: boolean;
  /** In the order of positions. */
  readonly blocks: number[] = [];
  /** Its blocks that are in the prefix tree: the first ones. */
  readonly path: PrefixNode[] = [];
  /** A block of which it will take a copy when it begins. */
  tail: PrefixTail | undefined;
  /** Positions that are written once all planned steps are done; the next one to write. */
  length = 0;
  /** What was borrowed is ready, and it writes behind it. */
  hasBegun = false;
  /** Rows of it have been planned. */
  hasRows = false;
  /** The first entry of the block table that the device has not been told. */
  tableFrom = 0;
  /** Checkpoints whose tokens are not all known or whose blocks are not in the tree yet. */
  readonly held: HeldCheckpoint[] = [];
  /** The row of the state as it was before drafts that are being verified. */
  spare: number | undefined;
  /** Nodes that got a checkpoint from here, the oldest first. */
  made: PrefixNode[] = [];

  constructor(slot: number, borrows: boolean) {
    this.slot = slot;
    this.borrows = borrows;
  }
}

export interface HeldCheckpoint {
  readonly position: number;
  readonly slot: number;
}
