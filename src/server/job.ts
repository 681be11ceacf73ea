/** One text in the making, as the HTTP thread sees it. */
import { Channel } from "./channel.ts";
import type { Finish, Piece } from "./protocol.ts";

export class Job implements AsyncIterable<Piece> {
  /** Resolves when the engine has read the prompt; rejects if it refuses it. */
  readonly accepted: Promise<void>;
  /** Resolves at the end, whichever it is. */
  readonly ended: Promise<void>;
  promptTokens = 0;
  readonly #onCancel: () => void;
  readonly #pieces = new Channel<Piece>();
  readonly #acceptance = Promise.withResolvers<void>();
  readonly #end = Promise.withResolvers<void>();
  #finish: Finish | undefined;
  #isOver = false;

  constructor(onCancel: () => void) {
    this.#onCancel = onCancel;
    this.accepted = this.#acceptance.promise;
    this.accepted.catch(() => {});
    this.ended = this.#end.promise;
  }

  /** How it ended, once all pieces were read. */
  get result(): Finish | undefined {
    return this.#finish;
  }

  /** The pieces as they come. Throws what made it fail. */
  [Symbol.asyncIterator](): AsyncGenerator<Piece, void> {
    return this.#pieces[Symbol.asyncIterator]();
  }

  cancel(): void {
    if (!this.#isOver) this.#onCancel();
  }

  accept(promptTokens: number): void {
    this.promptTokens = promptTokens;
    this.#acceptance.resolve();
  }

  add(piece: Piece): void {
    this.#pieces.push(piece);
  }

  finish(finish: Finish): void {
    this.#finish = finish;
    this.#close();
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    this.#acceptance.reject(error);
    this.#close(error);
  }

  #close(error?: unknown): void {
    this.#isOver = true;
    this.#pieces.close(error);
    this.#end.resolve();
  }
}
