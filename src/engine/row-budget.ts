/**
 * How many rows a step may have. It grows and shrinks with the time that full steps take, to keep a
 * submission within two limits.
 */

export interface RowLimits {
  readonly least: number;
  readonly first: number;
  readonly most: number;
  /** A full step that takes less lets the budget double. */
  readonly growMs: number;
  /** One that takes more halves it. */
  readonly shrinkMs: number;
}

export class RowBudget {
  readonly #limits: RowLimits;
  #rows: number;

  constructor(limits: RowLimits) {
    this.#limits = limits;
    this.#rows = Math.max(limits.first, limits.least);
  }

  get rows(): number {
    return this.#rows;
  }

  /** Only such steps tell anything. */
  isFull(rowCount: number): boolean {
    return rowCount >= this.#rows;
  }

  observe(rowCount: number, milliseconds: number): void {
    const { least, most, growMs, shrinkMs } = this.#limits;
    if (!this.isFull(rowCount)) return;
    if (milliseconds < growMs) this.#rows = Math.min(this.#rows * 2, most);
    if (milliseconds > shrinkMs) this.#rows = Math.max(Math.floor(this.#rows / 2), least);
  }
}
