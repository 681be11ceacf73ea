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
  /** Whether the logits behind its last row are wanted. */
  readonly hasOutput: boolean;
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
}

/** With its last row all tokens are computed, and the next one is made. */
export function hasOutput({ stream, position, rowCount }: Share): boolean {
  return position + rowCount === stream.length;
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
    const { stream, residence, position, isFirst, rowCount } = share;
    const { slot } = residence;
    const firstRow = rows.length;
    for (let at = position; at < position + rowCount; at++) {
      rows.push({ token: tokenAt(stream, at), position: at, sequence: slot });
    }
    const withOutput = hasOutput(share);
    if (withOutput) outputRows.push(rows.length - 1);
    return { id: stream.id, slot, position, firstRow, rowCount, hasOutput: withOutput, isFirst };
  });
  return { copies, tables, rows, outputRows, runs };
}

function tokenAt({ tokens, length }: TokenStream, at: number): number {
  const known = tokens[at];
  if (known !== undefined) return known;
  invariant(at === length - 1, `position ${at} is beyond the last token`);
  return latestToken;
}
