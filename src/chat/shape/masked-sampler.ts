/** A sampler that a mask holds to what may come next. */
import type { Sampler } from "../../engine/sampler.ts";
import { masked, type TokenMask } from "./token-mask.ts";

export class MaskedSampler implements Sampler {
  readonly #inner: Sampler;
  readonly #mask: TokenMask;

  constructor(inner: Sampler, mask: TokenMask) {
    this.#inner = inner;
    this.#mask = mask;
  }

  prime(prompt: readonly number[]): void {
    this.#inner.prime(prompt);
  }

  sample(logits: Float32Array): number {
    return this.#inner.sample(masked(logits, this.#mask));
  }
}
