/**
 * The step buffer: what changes from one submission of a program to the next. The words of
 * `shaders/include/step.glsl`, written by the host before a submission.
 */
import { invariant } from "../errors.ts";
import { product } from "../math.ts";

/** Positions in a block of the paged cache; BLOCK_TOKENS in shaders/include/cache.glsl. */
export const blockTokens = 32;

/** Row count, output count, row capacity, table stride, run count. */
const headerWords = 5;
/** Tokens, positions, sequences, output rows, first rows of runs. */
const wordsPerRow = 5;

/** Stands for the token that the device chose last for the row's sequence. */
export const latestToken = 0xffff_ffff;

export interface StepShape {
  /** The most rows that a step brings. */
  readonly rowCapacity: number;
  /** Sequences that have a block table. */
  readonly sequenceCapacity: number;
  /** Entries of a block table. */
  readonly tableStride: number;
}

export interface StepRow {
  readonly token: number;
  readonly position: number;
  readonly sequence: number;
}

export function stepBytes({ rowCapacity, sequenceCapacity, tableStride }: StepShape): number {
  return 4 * (headerWords + wordsPerRow * rowCapacity + product([sequenceCapacity, tableStride]));
}

/**
 * Writes a step's rows and the indices of the rows whose logits are wanted. Rows of one sequence
 * must stand next to each other, in order of position: state goes from one to the next.
 */
export function writeStep(
  words: Uint32Array,
  { rowCapacity, tableStride }: StepShape,
  rows: readonly StepRow[],
  outputRows: readonly number[],
): void {
  invariant(
    rows.length <= rowCapacity && outputRows.length <= rowCapacity,
    `${rows.length} rows in a step`,
  );
  words[0] = rows.length;
  words[1] = outputRows.length;
  words[2] = rowCapacity;
  words[3] = tableStride;
  let runCount = 0;
  rows.forEach(({ token, position, sequence }, i) => {
    words[headerWords + i] = token;
    words[headerWords + rowCapacity + i] = position;
    words[headerWords + 2 * rowCapacity + i] = sequence;
    if (rows[i - 1]?.sequence === sequence) return;
    words[headerWords + 4 * rowCapacity + runCount] = i;
    runCount++;
  });
  words[4] = runCount;
  outputRows.forEach((row, i) => {
    words[headerWords + 3 * rowCapacity + i] = row;
  });
}

/** Writes the cache blocks of a sequence from its `first` on, in the order of its positions. */
export function writeBlockTable(
  words: Uint32Array,
  { rowCapacity, tableStride }: StepShape,
  sequence: number,
  blocks: readonly number[],
  first = 0,
): void {
  const count = first + blocks.length;
  invariant(count <= tableStride, `${count} blocks in a table of ${tableStride}`);
  words.set(blocks, headerWords + wordsPerRow * rowCapacity + sequence * tableStride + first);
}
