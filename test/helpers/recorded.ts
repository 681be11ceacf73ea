/** Texts of an engine with what they were chosen from. */
import type { Engine } from "../../src/engine/engine.ts";
import type { FinishReason, GenerationRequest } from "../../src/engine/generation.ts";
import { HostSampler, topCandidates, type Sampler } from "../../src/engine/sampler.ts";
import { completeSampling, type Sampling } from "../../src/engine/sampling.ts";

/** A sampler that notes a digest of all logits and how far the best is ahead. */
class Recorder implements Sampler {
  readonly digests: number[] = [];
  readonly margins: number[] = [];
  readonly #inner: HostSampler;

  constructor(sampling: Sampling) {
    this.#inner = new HostSampler(sampling);
  }

  prime(prompt: readonly number[]): void {
    this.#inner.prime(prompt);
  }

  sample(logits: Float32Array): number {
    const [best, second] = topCandidates(logits, 2);
    this.margins.push((best?.logit ?? 0) - (second?.logit ?? 0));
    const { buffer, byteOffset, byteLength } = logits;
    this.digests.push(Number(Bun.hash.crc32(new Uint8Array(buffer, byteOffset, byteLength))));
    return this.#inner.sample(logits);
  }
}

export interface Recording {
  readonly tokens: readonly number[];
  readonly finish: FinishReason;
  readonly digests: readonly number[];
  readonly margins: readonly number[];
  readonly cachedTokens: number;
}

export type Wish = Pick<GenerationRequest, "prompt" | "maxTokens"> &
  Partial<GenerationRequest> & { readonly sampling?: Partial<Sampling> };

/** Makes one text, greedily unless told otherwise, over all ends. */
export async function record(engine: Engine, wish: Wish): Promise<Recording> {
  const { sampling = { temperature: 0 }, ...request } = wish;
  const sampler = new Recorder(completeSampling(sampling));
  let cachedTokens = 0;
  const onBegin = (count: number) => {
    cachedTokens = count;
    request.onBegin?.(count);
  };
  const text = engine.generate({ sampler, endTokens: new Set(), ...request, onBegin });
  const tokens: number[] = [];
  for (;;) {
    const { done, value } = await text.next();
    const { digests, margins } = sampler;
    if (done === true) return { tokens, finish: value, digests, margins, cachedTokens };
    tokens.push(value);
  }
}
