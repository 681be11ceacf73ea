/** What one step is to do: rows, and what must be copied and told before. */
import { invariant } from "../errors.ts";
import type { StepRow } from "../kernels/step.ts";
import type { CacheCopies, TableChange } from "./paged-cache.ts";
import type { Residence } from "./residence.ts";
import type { TokenStream } from "./token-stream.ts";

/** Stands for the id that the sampler chose last for the row's sequence slot. */
export const latestToken = -1;

/** Neighbouring rows of one sequence, in order of position. */
export interface Run {
  readonly id: number;
  readonly slot: number;
  /** Of the first row. */
  readonly position: number;
  readonly firstRow: number;
  readonly rowCount: number;
  /** Of the logits that are wanted: those behind the last rows of the run. */
  readonly firstOutput: number;
  readonly outputCount: number;
  /** The sequence has come to its slot: what the slot remembers is another's. */
  readonly isFirst: boolean;
}

/** In the order of execution: states, blocks and tables first, then the rows. */
export interface StepPlan {
  readonly copies: CacheCopies;
  readonly tables: readonly TableChange[];
  readonly rows: readonly StepRow[];
  readonly outputRows: readonly number[];
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
  /** What the last rows are fed, if they are guesses. */
  drafts: readonly number[];
}

/** With the last row that is no guess all tokens are computed, and the next one is made. */
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
    const [firstRow, firstOutput] = [rows.length, outputRows.length];
    for (let i = 0; i < rowCount; i++) {
      const token = tokenAt(share, position + i);
      rows.push({ token, position: position + i, sequence: residence.slot });
    }
    const outputCount = hasOutput(share) ? drafts.length + 1 : 0;
    for (let i = rows.length - outputCount; i < rows.length; i++) outputRows.push(i);
    const { id } = stream;
    const { slot } = residence;
    return { id, slot, position, firstRow, rowCount, firstOutput, outputCount, isFirst };
  });
  return { copies, tables, rows, outputRows, runs };
}

function tokenAt({ stream, position, rowCount, drafts }: Share, at: number): number {
  const draft = drafts[at - (position + rowCount - drafts.length)];
  if (draft !== undefined) return draft;
  const known = stream.tokens[at];
  if (known !== undefined) return known;
  invariant(at === stream.length - 1, `position ${at} is beyond the last token`);
  return latestToken;
}
