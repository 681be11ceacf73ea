/**
 * Drafts for the texts that share the steps: who has a guess, how likely it is, and whether it is
 * worth a try. Guesses are made for every token, tried or not, to know how good they would be.
 */
import type { DraftJudge, StepCost } from "./draft-account.ts";
import { DraftRecord } from "./draft-record.ts";
import { draftedRowsMax } from "./draft-rows.ts";
import type { Drafter, Guess } from "./drafter.ts";

/** A text with a drafter, and what that said last. */
interface DraftedText {
  readonly drafter: Drafter;
  readonly record: DraftRecord;
  guess: Guess | undefined;
  /** The number of tokens that it was made behind. */
  guessedAt: number;
}

/** A token of a guess. */
interface Chance {
  readonly id: number;
  readonly chance: number;
}

export type TokensOf = (id: number) => readonly number[] | undefined;

export class Speculation {
  readonly #judge: DraftJudge;
  readonly #texts = new Map<number, DraftedText>();

  constructor(judge: DraftJudge) {
    this.#judge = judge;
  }

  open(id: number, drafter: Drafter): void {
    const record = new DraftRecord();
    this.#texts.set(id, { drafter, record, guess: undefined, guessedAt: -1 });
  }

  close(id: number): void {
    this.#texts.delete(id);
  }

  /** The next tokens of a text are known, behind the first `length`. */
  hear(id: number, length: number, tokens: readonly number[]): void {
    const text = this.#texts.get(id);
    if (text?.guess === undefined) return;
    for (const [i, token] of tokens.entries()) {
      const guessed = text.guess.tokens[length - text.guessedAt + i];
      if (guessed === undefined) return;
      text.record.note(text.guess.evidence, guessed === token);
      if (guessed !== token) break;
    }
  }

  /** Whether drafts can be compared with steps of so many texts that had none. */
  knows(textCount: number): boolean {
    return this.#judge.knows(textCount);
  }

  /** For how many tokens ahead guesses of such evidence pay, at most `most`. */
  depth(textCount: number, evidence: number, most: number): number {
    if (textCount >= draftedRowsMax || this.#texts.size < textCount) return 0;
    const chances = [...this.#texts.values()].flatMap(({ record }) => {
      const chance = record.chance(evidence);
      return Array.from({ length: most }, (_unused, i) => chance ** (i + 1));
    });
    chances.sort((a, b) => b - a);
    return Math.ceil(this.#judge.worthwhile(textCount, chances) / textCount);
  }

  observe(cost: StepCost): void {
    this.#judge.observe(cost);
  }

  /** Whether the next step should wait for the tokens of the one under way, for their sake. */
  isWorthWaiting(textCount: number | undefined, tokensOf: TokensOf): boolean {
    // The token of the step under way must be as guessed, too.
    return this.#choose(textCount, tokensOf, 1).length > 0;
  }

  /** Drafts for the next step; all tokens of all texts are known. */
  drafts(textCount: number | undefined, tokensOf: TokensOf): ReadonlyMap<number, number[]> {
    const drafts = new Map<number, number[]>();
    for (const { id } of this.#choose(textCount, tokensOf, 0)) {
      const draft = drafts.get(id) ?? [];
      draft.push(this.#texts.get(id)?.guess?.tokens[draft.length] ?? 0);
      drafts.set(id, draft);
    }
    return drafts;
  }

  /** The tokens of guesses that are worth a try, beyond the first `skipped` of each. */
  #choose(textCount = 0, tokensOf: TokensOf, skipped: number): readonly Chance[] {
    // A text that nobody guesses for would only wait.
    if (textCount === 0 || textCount >= draftedRowsMax) return [];
    const chances: Chance[] = [];
    let knownCount = 0;
    for (const [id, text] of this.#texts) {
      const tokens = tokensOf(id);
      if (tokens === undefined) continue;
      knownCount++;
      chances.push(...chancesOf(id, text, tokens).slice(skipped));
    }
    if (knownCount < textCount) return [];
    chances.sort((a, b) => b.chance - a.chance);
    const likelihoods = chances.map(({ chance }) => chance);
    return chances.slice(0, this.#judge.worthwhile(textCount, likelihoods));
  }
}

/** One draft is accepted only if all before it are. */
function chancesOf(id: number, text: DraftedText, tokens: readonly number[]): Chance[] {
  if (text.guessedAt !== tokens.length) {
    text.guess = text.drafter.guess(tokens, draftedRowsMax);
    text.guessedAt = tokens.length;
  }
  const { guess, record } = text;
  const each = record.chance(guess?.evidence ?? 0);
  return (guess?.tokens ?? []).map((_token, i) => ({ id, chance: each ** (i + 1) }));
}
