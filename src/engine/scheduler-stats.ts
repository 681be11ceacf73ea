/** How full a scheduler is, and what it has done. */

export interface SchedulerStats {
  readonly waitingCount: number;
  readonly runningCount: number;
  readonly freeBlockCount: number;
  /** Blocks that only the prefix tree uses. */
  readonly idleBlockCount: number;
  /** Totals since the start. */
  readonly totals: Readonly<SchedulerTotals>;
}

export interface SchedulerTotals {
  rows: number;
  /** Rows whose ids nobody wanted any more. */
  discarded: number;
  /** Tokens of prompts that did not have to be computed. */
  cached: number;
  preemptions: number;
  /** Guesses of tokens that were verified, and those of them that were right. */
  drafted: number;
  accepted: number;
}

export function noTotals(): SchedulerTotals {
  return { rows: 0, discarded: 0, cached: 0, preemptions: 0, drafted: 0, accepted: 0 };
}
