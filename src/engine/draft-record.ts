/** How often the guesses for one text were right of late, by the evidence that there was. */

/** What is assumed of guesses with little and with much evidence, and how firmly. */
const firstChances = [0.4, 0.6, 0.75, 0.85, 0.7];
const firstWeight = 4;
/** What a guess still counts when the next one is judged. */
const memory = 0.9;

export class DraftRecord {
  readonly #seen = firstChances.map(() => firstWeight);
  readonly #right = firstChances.map((chance) => chance * firstWeight);

  note(evidence: number, isRight: boolean): void {
    const kind = kindOf(evidence);
    this.#seen[kind] = (this.#seen[kind] ?? 0) * memory + 1;
    this.#right[kind] = (this.#right[kind] ?? 0) * memory + (isRight ? 1 : 0);
  }

  /** That the next token of such a guess is right. */
  chance(evidence: number): number {
    const kind = kindOf(evidence);
    return (this.#right[kind] ?? 0) / (this.#seen[kind] ?? 1);
  }
}

function kindOf(evidence: number): number {
  return Math.min(evidence, firstChances.length - 1);
}
