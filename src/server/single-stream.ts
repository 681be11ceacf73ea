/** Tokens from an engine that makes one text at a time: who comes meanwhile waits for a turn. */
import type { Engine } from "../engine/engine.ts";
import { generateTokens, type FinishReason } from "../engine/generation.ts";
import { HostSampler, topCandidates, type Sampler } from "../engine/sampler.ts";
import { FairQueue } from "./fair-queue.ts";
import type {
  MadeToken,
  ScoredToken,
  TokenMask,
  TokenRequest,
  TokenSource,
} from "./token-source.ts";

export class SingleStream implements TokenSource {
  readonly parallel = 1;
  readonly #engine: Engine;
  readonly #queue = new FairQueue();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async *generate(request: TokenRequest): AsyncGenerator<MadeToken, FinishReason> {
    const { prompt, maxTokens, endTokens, client, mask, signal, onBegin } = request;
    if (!(await this.#queue.acquire(client, signal))) return "cancelled";
    const sequence = this.#engine.createSequence();
    try {
      onBegin();
      const sampler = new ScoringSampler(request);
      const options = { sampler, maxTokens, endTokens, signal };
      const tokens = generateTokens(this.#engine, sequence, prompt, options);
      for (;;) {
        const next = await tokens.next();
        if (next.done === true) return next.value;
        await mask?.accept(next.value);
        yield sampler.score(next.value);
      }
    } finally {
      this.#engine.release(sequence);
      this.#queue.release();
    }
  }
}

/** A sampler under a mask that remembers how likely its choice was. */
class ScoringSampler implements Sampler {
  readonly #inner: HostSampler;
  readonly #mask: TokenMask | undefined;
  readonly #topCount: number | undefined;
  #scores: ScoredToken[] = [];
  #chosen = Number.NaN;

  constructor({ sampling, mask, logprobs }: TokenRequest) {
    this.#inner = new HostSampler(sampling);
    this.#mask = mask;
    this.#topCount = logprobs;
  }

  prime(prompt: readonly number[]): void {
    this.#inner.prime(prompt);
  }

  sample(logits: Float32Array): number {
    const token = this.#inner.sample(this.#mask ? masked(logits, this.#mask.allowed) : logits);
    if (this.#topCount !== undefined) {
      const best = topCandidates(logits, Math.max(this.#topCount, 1));
      const zero = logSum(logits, best[0]?.logit ?? 0);
      this.#scores = best
        .slice(0, this.#topCount)
        .map(({ token: id, logit }) => ({ token: id, logprob: logit - zero }));
      this.#chosen = (logits[token] ?? Number.NEGATIVE_INFINITY) - zero;
    }
    return token;
  }

  /** The token that was sampled last, with its score. */
  score(token: number): MadeToken {
    return { token, logprob: this.#chosen, top: this.#scores };
  }
}

function masked(logits: Float32Array, allowed: Int32Array): Float32Array {
  const result = new Float32Array(logits.length).fill(Number.NEGATIVE_INFINITY);
  for (let token = 0; token < logits.length; token++) {
    if (((allowed[token >> 5] ?? 0) >> (token & 31)) & 1) result[token] = logits[token] ?? 0;
  }
  return result;
}

/** log Σ exp(logit) */
function logSum(logits: Float32Array, max: number): number {
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - max);
  return max + Math.log(sum);
}
