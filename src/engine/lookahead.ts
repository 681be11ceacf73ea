/**
 * Guesses by the model's own layers for further tokens, where the file has them. These layers keep
 * keys and values, too, so they follow every step of a text from its prompt on; where that does not
 * pay any more they stop, for good as far as this text goes.
 */
import type { Drafter, Guess } from "./drafter.ts";
import { depthMax, type PredictorPasses } from "./predictor-passes.ts";
import type { Runner } from "./runner.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Speculation } from "./speculation.ts";
import type { Outcome } from "./step-outcome.ts";
import type { StepPlan } from "./step-plan.ts";

/** Beyond that of any match of tokens. */
const evidence = 4;

/** What was guessed last for a text. */
export class PredictedTokens implements Drafter {
  #at = -1;
  #tokens: readonly number[] = [];

  /** What follows the first `at` tokens. */
  offer(at: number, tokens: readonly number[]): void {
    [this.#at, this.#tokens] = [at, tokens];
  }

  guess(tokens: readonly number[], count: number): Guess | undefined {
    if (tokens.length !== this.#at) return undefined;
    return { tokens: this.#tokens.slice(0, count), evidence };
  }
}

export interface LookaheadParts {
  readonly scheduler: Scheduler;
  readonly runner: Runner;
  readonly speculation: Speculation;
  readonly passes: PredictorPasses;
}

export class Lookahead {
  readonly #parts: LookaheadParts;
  readonly #texts = new Map<number, PredictedTokens>();

  constructor(parts: LookaheadParts) {
    this.#parts = parts;
  }

  open(id: number, tokens: PredictedTokens): void {
    this.#texts.set(id, tokens);
  }

  close(id: number): void {
    this.#texts.delete(id);
  }

  /** Whether the next step waits for what is guessed behind the one under way. */
  get isAwaited(): boolean {
    const { scheduler, speculation } = this.#parts;
    const { decodingCount } = scheduler;
    if (this.#texts.size === 0 || decodingCount === undefined) return false;
    // Without guesses at first, to know what they are worth.
    return speculation.knows(decodingCount);
  }

  /** Behind a step that is complete. Whether it took no longer than it takes again. */
  follow(plan: StepPlan, flight: number, outcomes: readonly Outcome[]): boolean {
    const { passes } = this.#parts;
    passes.tell(plan.tables);
    if (this.#texts.size === 0) return true;
    const knownCount = passes.programCount;
    const depth = this.#depth();
    if (depth === 0) {
      this.#texts.clear();
      return true;
    }
    const outputs = depth === undefined ? [] : this.#outputsOf(plan, outcomes, depth);
    const rows = plan.runs.flatMap(({ id, firstRow, rowCount }) => {
      const tokens = this.#parts.scheduler.tokensOf(id) ?? [];
      // Whatever stands behind guesses that were wrong: it is computed again.
      return plan.rows.slice(firstRow, firstRow + rowCount).map((row) => ({
        ...row,
        token: tokens[row.position + 1] ?? 0,
      }));
    });
    const outputRows = outputs.map(({ row }) => row);
    const guesses = passes.run({ flight, rows, outputRows, depth: depth ?? 0 });
    outputs.forEach(({ id, length }, i) => this.#texts.get(id)?.offer(length, guesses[i] ?? []));
    return passes.programCount === knownCount;
  }

  /** Tokens ahead; undefined as long as there is nothing to compare with, 0 if it does not pay. */
  #depth(): number | undefined {
    const { scheduler, speculation } = this.#parts;
    const { decodingCount } = scheduler;
    if (decodingCount === undefined || !speculation.knows(decodingCount)) return undefined;
    return speculation.depth(decodingCount, evidence, depthMax);
  }

  /** The last row of each text that turned out to be right, and where its cache has room. */
  #outputsOf({ runs }: StepPlan, outcomes: readonly Outcome[], depth: number) {
    const { scheduler, runner, passes } = this.#parts;
    const made = runs.filter(({ hasOutput }) => hasOutput);
    return made.flatMap(({ id, firstRow, rowCount, drafts }, i) => {
      const length = scheduler.tokensOf(id)?.length;
      const { tokens = [] } = outcomes[i] ?? {};
      if (length === undefined || !this.#texts.has(id)) return [];
      const tables = scheduler.reserve(id, length - 2 + depth);
      if (tables === undefined) return [];
      runner.tell(tables);
      passes.tell(tables);
      return [{ id, length, row: firstRow + rowCount - 1 - drafts.length + tokens.length - 1 }];
    });
  }
}
