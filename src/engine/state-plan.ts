/** How many states of recurrent layers are kept: they take room that the cache could have. */
import { draftedRowsMax } from "./draft-rows.ts";
import type { DraftSource } from "./drafter.ts";

export interface StateWishes {
  /** Texts that are made side by side, at most; 1 by default. */
  readonly parallel?: number | undefined;
  /** States that are kept for texts that begin alike, at most. */
  readonly checkpoints?: number | undefined;
  /** Who guesses how texts go on. */
  readonly drafts?: DraftSource | undefined;
}

export interface StateCapacities {
  readonly sequenceCapacity: number;
  readonly checkpointCapacity: number | undefined;
  readonly spareCapacity: number;
}

/** Two for each sequence, at the ends of prompt and answer, and some for what they share. */
const checkpointsBeside = 6;
/** With each of them and one draft of each a step has all the rows that drafts may take. */
const draftedTextsMax = draftedRowsMax / 2;
/** Part of the free memory that recurrent state may take beyond that of one sequence. */
const stateShare = 0.25;

/** States that take no more than their share of the room, and one in any case. */
export function fittingStates(bytesPerSequence: number, roomBytes: number): number {
  if (bytesPerSequence === 0) return Number.POSITIVE_INFINITY;
  return Math.max(Math.floor((roomBytes * stateShare) / bytesPerSequence), 1);
}

/** Of sequences, spare ones and checkpoints, where so many fit. */
export function statesFor(
  { parallel = 1, checkpoints, drafts = "off" }: StateWishes,
  fitting: number,
) {
  const sequenceCapacity = Math.min(parallel, fitting);
  const wanted = checkpoints ?? 2 * parallel + checkpointsBeside;
  const spares = drafts === "off" ? 0 : Math.min(sequenceCapacity, draftedTextsMax);
  const spareCapacity = Math.min(spares, fitting - sequenceCapacity);
  const checkpointCapacity = Math.min(wanted, fitting - sequenceCapacity - spareCapacity);
  return { sequenceCapacity, checkpointCapacity, spareCapacity };
}

/** Rows that the state of a recurrent layer has: of sequences, of checkpoints, and spare ones. */
export function stateCount({
  sequenceCapacity,
  checkpointCapacity = 0,
  spareCapacity,
}: StateCapacities): number {
  return sequenceCapacity + checkpointCapacity + spareCapacity;
}
