/**
 * Who waits for which model, while one at a time is loaded. Whoever came first decides which is
 * next, and all who want the same one go with it; those who come later wait behind the others, or
 * a busy model would never make place.
 */
import type { OfferedModel } from "./shelf.ts";

export interface Turn {
  readonly model: OfferedModel;
  /** Texts that it will start. */
  readonly count: number;
  /** Called once, unless it is failed or given up. */
  begin(): void;
  fail(error: unknown): void;
}

export class TurnQueue {
  #turns: Turn[] = [];

  /** Texts of all who wait. */
  get count(): number {
    return this.#turns.reduce((sum, { count }) => sum + count, 0);
  }

  /** The model that is wanted next. */
  get next(): OfferedModel | undefined {
    return this.#turns[0]?.model;
  }

  add(turn: Turn): void {
    this.#turns.push(turn);
  }

  /** False if it does not wait any more. */
  remove(turn: Turn): boolean {
    const before = this.#turns.length;
    this.#turns = this.#turns.filter((one) => one !== turn);
    return this.#turns.length < before;
  }

  /** Takes out all who want a model; all there are without one. */
  take(id?: string): Turn[] {
    const isTaken = ({ model }: Turn) => id === undefined || model.id === id;
    const taken = this.#turns.filter(isTaken);
    this.#turns = this.#turns.filter((turn) => !isTaken(turn));
    return taken;
  }
}
