/** Random numbers of which the last few can be drawn again. */
import { invariant } from "../errors.ts";
import { draftedRowsMax } from "./draft-rows.ts";

export class RandomTape {
  readonly #source: () => number;
  /** The last that were drawn, then those that were taken back. */
  readonly #numbers: number[] = [];
  #unreadCount = 0;

  constructor(source: () => number) {
    this.#source = source;
  }

  next(): number {
    if (this.#unreadCount > 0) return this.#numbers.at(-this.#unreadCount--) ?? 0;
    const number = this.#source();
    this.#numbers.push(number);
    if (this.#numbers.length > draftedRowsMax) this.#numbers.shift();
    return number;
  }

  takeBack(count: number): void {
    this.#unreadCount += count;
    invariant(this.#unreadCount <= this.#numbers.length, `${count} numbers were not drawn`);
  }
}
