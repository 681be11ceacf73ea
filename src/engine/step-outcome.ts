/** What a step has made, as the loop tells it to the scheduler and the scheduler to the loop. */

/** Of a run with outputs. */
export interface Outcome {
  /** Drafts that were right, then the token behind them. */
  readonly tokens: readonly number[];
  /** The last one ends the text. */
  readonly isEnd: boolean;
}

/** Of a text that somebody still wants. */
export interface Progress {
  readonly id: number;
  readonly tokens: readonly number[];
  readonly finish: "stop" | "length" | undefined;
}
