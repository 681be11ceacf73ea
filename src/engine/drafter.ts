/** Whoever guesses how a text goes on. A wrong guess costs time, and never changes the text. */

/** The text's own past, the model's layers for further tokens, or nobody. */
export const draftSources = ["ngram", "mtp", "off"] as const;
export type DraftSource = (typeof draftSources)[number];

export interface Guess {
  readonly tokens: readonly number[];
  /** The more evidence there is, the likelier is the guess; classes that are kept count of. */
  readonly evidence: number;
}

export interface Drafter {
  /** At most `count` tokens that may follow; undefined if it has no idea. */
  guess(tokens: readonly number[], count: number): Guess | undefined;
}
