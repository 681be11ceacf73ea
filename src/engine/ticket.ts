/** One text that was asked for, between the loop that makes its tokens and whoever reads them. */
import type { FinishReason, GenerationRequest } from "./generation.ts";

export class Ticket {
  readonly request: GenerationRequest;
  hasBegun = false;
  isPrefilled = false;
  readonly #tokens: number[] = [];
  #finish: FinishReason | undefined;
  #failure: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(request: GenerationRequest) {
    this.request = request;
  }

  push(token: number): void {
    this.#tokens.push(token);
    this.#wake?.();
  }

  /** There are no more tokens. */
  finish(reason: FinishReason): void {
    this.#finish ??= reason;
    this.#wake?.();
  }

  /** Ends at once; tokens that nobody has read are dropped. */
  cancel(): void {
    this.#tokens.length = 0;
    this.finish("cancelled");
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.#wake?.();
  }

  /** The next token, or why there is none. Throws what the loop threw. */
  async next(): Promise<number | FinishReason> {
    for (;;) {
      const token = this.#tokens.shift();
      if (token !== undefined) return token;
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.#finish !== undefined) return this.#finish;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
