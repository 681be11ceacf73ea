/** Tokens from the engine, which makes many texts side by side and is fair to those who ask. */
import { isDeadEnd, masked, type TokenMask } from "../chat/shape/token-mask.ts";
import type { Engine } from "../engine/engine.ts";
import type { FinishReason } from "../engine/generation.ts";
import {
  HostSampler,
  topCandidates,
  type DeviceSampling,
  type Sampler,
} from "../engine/sampler.ts";
import type {
  EmbeddingRequest,
  MadeToken,
  ScoredToken,
  TokenRequest,
  TokenSource,
} from "./token-source.ts";

export class EngineSource implements TokenSource {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  get parallel(): number {
    return this.#engine.plan.sequenceCapacity;
  }

  embed(request: EmbeddingRequest): Promise<Float32Array | undefined> {
    return this.#engine.embed(request);
  }

  async *generate(request: TokenRequest): AsyncGenerator<MadeToken, FinishReason> {
    const { prompt, maxTokens, endTokens, client, boundaries, mask, signal, onBegin } = request;
    const sampler = new ScoringSampler(request);
    await using tokens = this.#engine.generate({
      prompt,
      maxTokens,
      sampler,
      endTokens,
      client,
      boundaries,
      signal,
      onBegin,
      // The next mask follows from the last token.
      lockstep: mask !== undefined,
    });
    for (;;) {
      const next = await tokens.next();
      if (next.done === true) return next.value;
      await mask?.accept(next.value);
      yield sampler.scoreOf(next.value);
      // No token spells what a grammar wants next.
      if (mask !== undefined && isDeadEnd(mask)) return "stop";
    }
  }
}

/** A sampler under a mask that remembers how likely its choices were. */
class ScoringSampler implements Sampler {
  /** The device neither scores nor masks. */
  readonly onDevice: DeviceSampling | undefined;
  readonly #inner: HostSampler;
  readonly #mask: TokenMask | undefined;
  readonly #topCount: number | undefined;
  /** Of tokens that nobody has asked about: they may be made ahead of their reader. */
  readonly #scores: MadeToken[] = [];

  constructor({ sampling, mask, logprobs }: TokenRequest) {
    this.#inner = new HostSampler(sampling);
    this.#mask = mask;
    this.#topCount = logprobs;
    const isPlain = mask === undefined && logprobs === undefined;
    this.onDevice = isPlain ? this.#inner.onDevice : undefined;
  }

  prime(prompt: readonly number[]): void {
    this.#inner.prime(prompt);
  }

  sample(logits: Float32Array): number {
    const token = this.#inner.sample(this.#mask ? masked(logits, this.#mask) : logits);
    if (this.#topCount !== undefined) this.#scores.push(scored(logits, token, this.#topCount));
    return token;
  }

  /** The score of the next token, in the order in which they were made. */
  scoreOf(token: number): MadeToken {
    return this.#scores.shift() ?? { token, logprob: Number.NaN, top: [] };
  }
}

function scored(logits: Float32Array, token: number, topCount: number): MadeToken {
  const best = topCandidates(logits, Math.max(topCount, 1));
  const zero = logSum(logits, best[0]?.logit ?? 0);
  const top: ScoredToken[] = best
    .slice(0, topCount)
    .map(({ token: id, logit }) => ({ token: id, logprob: logit - zero }));
  return { token, logprob: (logits[token] ?? Number.NEGATIVE_INFINITY) - zero, top };
}

/** log Σ exp(logit) */
function logSum(logits: Float32Array, max: number): number {
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - max);
  return max + Math.log(sum);
}
