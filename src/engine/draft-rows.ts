/** Rows of a step that are fed guesses: how many there is room for. */
import { invariant } from "../errors.ts";
import type { PagedCache } from "./paged-cache.ts";
import { hasOutput, type Share } from "./step-plan.ts";

/** Of a step with guesses, all texts together: with more of them a step costs what they bring. */
export const draftedRowsMax = 8;

/** Numbers of rows that there are programs for: more drafts up to the next one cost nothing. */
export const draftedRowCounts = [2, 4, draftedRowsMax];

export interface DraftLimits {
  /** Positions of a sequence at most. */
  readonly contextTokens: number;
  /** Rows of a step whose logits can be had. */
  readonly outputCapacity: number;
}

/** Adds the guesses of each text to its row, if all there is to do is decoding. */
export function addDrafts(
  shares: readonly Share[],
  cache: PagedCache,
  limits: DraftLimits,
  rowsLeft: number,
): void {
  // What is computed again behind wrong guesses takes rows, too: fewer are left for new ones.
  const rowCount = shares.reduce((sum, share) => sum + share.rowCount, 0);
  let room = Math.min(rowsLeft, draftedRowsMax - rowCount, limits.outputCapacity - shares.length);
  if (!shares.every(hasOutput)) room = 0;
  for (const share of shares) {
    const { stream, residence } = share;
    const drafts = stream.drafts.slice(0, Math.max(Math.min(room, roomOf(share, limits)), 0));
    stream.drafts = [];
    const count = cache.grow(residence, drafts.length);
    if (count === 0 || !cache.mark(residence)) {
      cache.unmark(residence);
      continue;
    }
    share.drafts = drafts.slice(0, count);
    share.rowCount += count;
    stream.verifyingCount = count;
    cache.advance(residence, count);
    room -= count;
  }
}

/** Goes back behind the guesses that were right, of which there is one less than `tokens`. */
export function settleDrafts(
  { stream, residence, position, rowCount, drafts }: Share,
  tokens: readonly number[],
  cache: PagedCache,
): number {
  const rightCount = tokens.length - 1;
  invariant(rightCount >= 0 && rightCount <= drafts.length, `${rightCount} guesses were right`);
  if (drafts.length === 0) return 0;
  stream.verifyingCount = 0;
  // It may have lost its place meanwhile.
  if (stream.residence !== residence) return rightCount;
  const length = position + rowCount - drafts.length + rightCount;
  stream.isReplaying = !cache.rewind(residence, position, length);
  return rightCount;
}

/** Of one text. The step that ends at a checkpoint is one that cannot be taken back. */
function roomOf({ stream, residence, rowCount }: Share, { contextTokens }: DraftLimits): number {
  const { length, madeCount, maxTokens, pendingCount } = stream;
  const isAgain = residence.spare !== undefined;
  if ((rowCount > 1 && !isAgain) || madeCount === 0 || pendingCount > 0) return 0;
  const untilCheckpoint = stream.checkpointAfter(length - 1) - length - 1;
  return Math.min(maxTokens - madeCount - 1, contextTokens - length, untilCheckpoint);
}
