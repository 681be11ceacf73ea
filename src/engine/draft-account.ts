/**
 * Whether drafts pay. Steps that only decode tell what a token costs; steps with drafts, and those
 * that had to wait for them, are charged with their time and credited with their tokens. What may
 * be lost is what was gained before and a small share of all decoding: so drafts that are always
 * wrong cost no more than that.
 */
import { draftedRowCounts } from "./draft-rows.ts";
import { TypicalTime } from "./typical-time.ts";

/** What a step that makes a token of each text cost. */
export interface StepCost {
  readonly texts: number;
  readonly rows: number;
  /** Of all texts together. */
  readonly tokens: number;
  /** From the end of the step before. */
  readonly milliseconds: number;
  /** Drafts had nothing to do with it. */
  readonly isPlain: boolean;
}

/** Who decides how many drafts a step has. */
export interface DraftJudge {
  observe(cost: StepCost): void;
  /** Whether there is something to compare drafts with. */
  knows(texts: number): boolean;
  /**
   * How many drafts are worth a try in a step of some texts: the first ones of a list that says of
   * each how likely it is to be accepted, the likeliest first.
   */
  worthwhile(texts: number, chances: readonly number[]): number;
}

/** Of the time of plain decoding. */
const lossShare = 0.02;
/** Plain steps that may be lost at first, and at most. */
const creditFirst = 1;
const creditMost = 4;
/** Of a plain step: what it costs to take back a step of a recurrent model. */
const againShare = 0.2;
/** Plain steps that tell what such steps take. */
const plainLeast = 3;
/** Steps of either kind after which the other one may take another time than it did. */
const forgetAfter = 64;

export class DraftAccount implements DraftJudge {
  readonly #isRecurrent: boolean;
  /** By texts that share a step. */
  readonly #plain = new Map<number, TypicalTime>();
  /** By rows, of steps with drafts. */
  readonly #drafted = new Map<number, TypicalTime>();
  #creditMs: number | undefined;
  /** Steps of the same kind in a row. */
  #plainCount = 0;
  #draftedCount = 0;

  /** A recurrent model computes again what was right in front of a wrong draft. */
  constructor(isRecurrent: boolean) {
    this.#isRecurrent = isRecurrent;
  }

  observe({ texts, rows, tokens, milliseconds, isPlain }: StepCost): void {
    this.#count(texts, isPlain);
    if (isPlain) typicalOf(this.#plain, texts).add(milliseconds);
    const known = this.#plain.get(texts)?.milliseconds;
    if (known === undefined) return;
    // No step is faster for having more rows: then everything has become faster.
    const plainMs = Math.min(known, milliseconds);
    const credit = this.#creditMs ?? creditFirst * plainMs;
    const gain = isPlain ? lossShare * plainMs : (tokens / texts) * plainMs - milliseconds;
    const most = creditMost * plainMs;
    // A step that took ages was held up by something else.
    this.#creditMs = Math.min(credit + Math.max(gain, -most), most);
    // One that waited in vain says nothing of what more rows cost.
    if (!isPlain && rows > texts) typicalOf(this.#drafted, programRows(rows)).add(milliseconds);
  }

  knows(texts: number): boolean {
    return (this.#plain.get(texts)?.count ?? 0) >= plainLeast;
  }

  worthwhile(texts: number, chances: readonly number[]): number {
    if (!this.knows(texts)) return 0;
    const plainMs = Math.min(
      this.#plain.get(texts)?.milliseconds ?? 0,
      ...[...this.#drafted.values()].map(({ milliseconds = Infinity }) => milliseconds),
    );
    let [best, bestGain] = [0, 0.05 * plainMs];
    for (const rows of draftedRowCounts) {
      const count = Math.min(rows - texts, chances.length);
      if (count <= 0) continue;
      const costMs = this.#costOf(rows, texts, plainMs) - plainMs;
      const tokens = chances.slice(0, count).reduce((sum, chance) => sum + chance, 0);
      const againMs = this.#isRecurrent
        ? (1 - (chances[count - 1] ?? 0)) * plainMs * againShare
        : 0;
      const gain = (tokens / texts) * plainMs - costMs - againMs;
      const canLose = costMs + againMs <= (this.#creditMs ?? 0);
      if (gain > bestGain && canLose) [best, bestGain] = [count, gain];
      // What twice as many cost is not tried before this is known.
      if (this.#drafted.get(rows)?.milliseconds === undefined) break;
    }
    return best;
  }

  #count(texts: number, isPlain: boolean): void {
    this.#plainCount = isPlain ? this.#plainCount + 1 : 0;
    this.#draftedCount = isPlain ? 0 : this.#draftedCount + 1;
    if (this.#plainCount === forgetAfter) {
      this.#plainCount = 0;
      for (const time of this.#drafted.values()) time.forget();
    }
    // A few steps without drafts follow, to know.
    if (this.#draftedCount === forgetAfter) this.#plain.delete(texts);
  }

  /** More rows cost something, even if all of the time goes into reading weights. */
  #costOf(rows: number, texts: number, plainMs: number): number {
    const known = this.#drafted.get(rows)?.milliseconds;
    if (known !== undefined) return known;
    const fewer = this.#drafted.get(rows / 2)?.milliseconds ?? 0;
    return Math.max(plainMs * (1.1 + 0.05 * (rows - texts)), 2 * fewer - plainMs);
  }
}

function typicalOf(times: Map<number, TypicalTime>, key: number): TypicalTime {
  const known = times.get(key);
  if (known !== undefined) return known;
  const time = new TypicalTime();
  times.set(key, time);
  return time;
}

function programRows(rows: number): number {
  return draftedRowCounts.find((count) => rows <= count) ?? rows;
}
