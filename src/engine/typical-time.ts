/** The time that something usually takes: the median of the last few, which no mishap moves. */

const samplesMax = 7;

export class TypicalTime {
  readonly #samples: number[] = [];

  get milliseconds(): number | undefined {
    return this.#samples.toSorted((a, b) => a - b)[Math.floor((this.#samples.length - 1) / 2)];
  }

  get count(): number {
    return this.#samples.length;
  }

  add(milliseconds: number): void {
    this.#samples.push(milliseconds);
    if (this.#samples.length > samplesMax) this.#samples.shift();
  }

  /** The oldest says little about now. */
  forget(): void {
    this.#samples.shift();
  }
}
