/** What one step is to do: rows, and what must be copied and told before. */
import { invariant } from "../errors.ts";
import { latestToken, type StepRow } from "../kernels/step.ts";
import type { CacheCopies, TableChange } from "./paged-cache.ts";
import type { Residence } from "./residence.ts";
import type { TokenStream } from "./token-stream.ts";

/** Neighbouring rows of one sequence, in order of position. */
export interface Run {
  readonly id: number;
  readonly slot: number;
  /** Of the first row. */
  readonly position: number;
  readonly firstRow: number;
  readonly rowCount: number;
  /** Whether the logits behind its last row are wanted, and behind the one before each draft. */
  readonly hasOutput: boolean;
  /** What the last rows are fed: guesses. */
  readonly drafts: readonly number[];
  /** The sequence has come to its slot: what the slot remembers is another's. */
  readonly isFirst: boolean;
}

/** In the order of execution: states, blocks and tables first, then the rows. */
export interface StepWork {
  readonly copies: CacheCopies;
  readonly tables: readonly TableChange[];
  readonly rows: readonly StepRow[];
  /** Of the rows whose logits are wanted. */
  readonly outputRows: readonly number[];
}

export interface StepPlan extends StepWork {
  readonly runs: readonly Run[];
}

/** Rows of one stream in a step. */
export interface Share {
  readonly stream: TokenStream;
  readonly residence: Residence;
  /** Of the first row. */
  readonly position: number;
  readonly isFirst: boolean;
  rowCount: number;
  /** What its last rows are fed beyond the tokens of the stream. */
  drafts: readonly number[];
}

/** With its last row that is no draft all tokens are computed, and the next one is made. */
export function hasOutput({ stream, position, rowCount, drafts }: Share): boolean {
  return position + rowCount - drafts.length === stream.length;
}

/** Before the streams count the tokens that the step makes. */
export function assembleStep(
  shares: readonly Share[],
  copies: CacheCopies,
  tables: readonly TableChange[],
): StepPlan {
  const rows: StepRow[] = [];
  const outputRows: number[] = [];
  const runs = shares.map((share): Run => {
    const { stream, residence, position, isFirst, rowCount, drafts } = share;
    const { slot } = residence;
    const firstRow = rows.length;
    for (let at = position; at < position + rowCount; at++) {
      rows.push({ token: tokenAt(share, at), position: at, sequence: slot });
    }
    const withOutput = hasOutput(share);
    const firstOutput = rows.length - 1 - drafts.length;
    for (let row = firstOutput; withOutput && row < rows.length; row++) outputRows.push(row);
    const { id } = stream;
    return { id, slot, position, firstRow, rowCount, hasOutput: withOutput, drafts, isFirst };
  });
  return { copies, tables, rows, outputRows, runs };
}

function tokenAt({ stream, drafts }: Share, at: number): number {
  const { tokens, length } = stream;
  const known = tokens[at] ?? drafts[at - length];
  if (known !== undefined) return known;
  invariant(at === length - 1, `position ${at} is beyond the last token`);
  return latestToken;
}
