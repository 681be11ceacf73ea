/** Values that are put in at one end and iterated over at the other, in order. */

export class Channel<T> implements AsyncIterable<T> {
  readonly #values: T[] = [];
  #wake: () => void = () => {};
  #isClosed = false;
  #error: unknown;

  push(value: T): void {
    if (this.#isClosed) return;
    this.#values.push(value);
    this.#wake();
  }

  /** Nothing comes any more; with an error, the reader gets it behind the last value. */
  close(error?: unknown): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#error = error;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void> {
    for (;;) {
      while (this.#values.length > 0) yield this.#values.shift() as T;
      if (this.#isClosed) break;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#error !== undefined) throw this.#error;
  }
}
