/**
 * Logits → the next token: penalties, then the filters, then a draw. The order is that of common
 * engines.
 */
import { invariant } from "../errors.ts";
import { candidatesMax, greedySampling, type OutputSampling } from "../kernels/sample.ts";
import { RandomTape } from "./random-tape.ts";
import { repeatWindow, type Sampling } from "./sampling.ts";

/** What the generation loop needs of a sampler, wherever it runs. */
export interface Sampler {
  /** Tokens that stand before the answer; the repeat penalty looks back on them. */
  prime(prompt: readonly number[]): void;
  /** Chooses a token, and remembers it for the penalties. */
  sample(logits: Float32Array): number;
  /** What lets the device choose instead; undefined if it cannot. */
  readonly onDevice?: DeviceSampling | undefined;
}

export interface DeviceSampling {
  readonly biasCount: number;
  /** For the next token; each call draws a random number. */
  next(): OutputSampling;
  /** The last so many, at most `draftedRowsMax`, chose nothing that counts. */
  takeBack(count: number): void;
}

interface Candidate {
  readonly token: number;
  readonly logit: number;
}

export class HostSampler implements Sampler {
  readonly onDevice: DeviceSampling | undefined;
  readonly #sampling: Sampling;
  readonly #random: RandomTape;
  #recent: number[] = [];
  readonly #generated = new Map<number, number>();

  constructor(sampling: Sampling) {
    this.#sampling = sampling;
    this.#random = new RandomTape(seededRandom(sampling.seed ?? freshSeed()));
    this.onDevice = deviceSampling(sampling, this.#random);
  }

  prime(prompt: readonly number[]): void {
    this.#recent = prompt.slice(-repeatWindow);
  }

  sample(logits: Float32Array): number {
    const token = this.#choose(this.#penalized(logits));
    this.#generated.set(token, (this.#generated.get(token) ?? 0) + 1);
    this.#recent.push(token);
    if (this.#recent.length > repeatWindow) this.#recent.shift();
    return token;
  }

  #choose(logits: Float32Array): number {
    const { temperature, topK, topP, minP } = this.#sampling;
    if (temperature === 0) return argmax(logits);
    const best = topCandidates(logits, topK);
    const kept = keepMinP(keepTopP(best, topP), minP);
    return draw(kept, temperature, this.#random.next());
  }

  /** A copy with bias and penalties, or the logits themselves if there are none. */
  #penalized(logits: Float32Array): Float32Array {
    const { logitBias, repeatPenalty, presencePenalty, frequencyPenalty } = this.#sampling;
    const counts = presencePenalty !== 0 || frequencyPenalty !== 0;
    if (logitBias.size === 0 && repeatPenalty === 1 && !counts) return logits;
    const result = logits.slice();
    for (const [token, bias] of logitBias) add(result, token, bias);
    if (repeatPenalty !== 1) {
      for (const token of new Set(this.#recent)) {
        const logit = result[token] ?? 0;
        if (token < result.length)
          result[token] = logit > 0 ? logit / repeatPenalty : logit * repeatPenalty;
      }
    }
    if (counts) {
      for (const [token, count] of this.#generated) {
        add(result, token, -presencePenalty - count * frequencyPenalty);
      }
    }
    return result;
  }
}

/** The device keeps a number of candidates, and remembers nothing. */
function deviceSampling(sampling: Sampling, random: RandomTape): DeviceSampling | undefined {
  const { temperature, topK, topP, minP, logitBias: biases } = sampling;
  const { repeatPenalty, presencePenalty, frequencyPenalty } = sampling;
  const remembers = repeatPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0;
  if (remembers) return undefined;
  const biasCount = biases.size;
  if (temperature === 0) {
    return { biasCount, next: () => ({ ...greedySampling, biases }), takeBack: () => {} };
  }
  if (topK === 0 || topK > candidatesMax) return undefined;
  return {
    biasCount,
    next: () => ({ temperature, topK, topP, minP, random: random.next(), biases }),
    takeBack: (count) => random.takeBack(count),
  };
}

function add(logits: Float32Array, token: number, amount: number): void {
  if (token < logits.length) logits[token] = (logits[token] ?? 0) + amount;
}

/** The index of the largest value, the first one of equals. */
export function argmax(values: Float32Array): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) {
    if ((values[i] ?? 0) > (values[best] ?? 0)) best = i;
  }
  return best;
}

/**
 * The `count` largest logits, best first; all if `count` is 0. Equal logits keep the order of their
 * ids.
 */
export function topCandidates(logits: Float32Array, count: number): Candidate[] {
  const better = (a: Candidate, b: Candidate) => b.logit - a.logit || a.token - b.token;
  if (count === 0 || count >= logits.length) {
    return Array.from(logits, (logit, token) => ({ token, logit })).sort(better);
  }
  // Collects in batches: most logits fall below the worst that is kept so far.
  let kept: Candidate[] = [];
  let floor = Number.NEGATIVE_INFINITY;
  for (let token = 0; token < logits.length; token++) {
    const logit = logits[token] ?? Number.NEGATIVE_INFINITY;
    if (logit <= floor && kept.length >= count) continue;
    kept.push({ token, logit });
    if (kept.length < 2 * count + 64) continue;
    kept = kept.sort(better).slice(0, count);
    floor = kept.at(-1)?.logit ?? floor;
  }
  return kept.sort(better).slice(0, count);
}

/** The shortest head of the candidates whose probabilities reach `topP`. */
export function keepTopP(candidates: readonly Candidate[], topP: number): readonly Candidate[] {
  if (topP >= 1) return candidates;
  const weights = weightsOf(candidates, 1);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let sum = 0;
  const end = weights.findIndex((weight) => (sum += weight) >= topP * total);
  return candidates.slice(0, Math.max(end + 1, 1));
}

/** Those at least `minP` times as likely as the first. */
export function keepMinP(candidates: readonly Candidate[], minP: number): readonly Candidate[] {
  const weights = weightsOf(candidates, 1);
  return minP === 0 ? candidates : candidates.filter((_candidate, i) => (weights[i] ?? 0) >= minP);
}

/** The candidate at `random` (0 to 1) of the total probability. */
function draw(candidates: readonly Candidate[], temperature: number, random: number): number {
  const weights = weightsOf(candidates, temperature);
  let rest = random * weights.reduce((sum, weight) => sum + weight, 0);
  const index = weights.findIndex((weight) => (rest -= weight) < 0);
  const chosen = candidates[index < 0 ? candidates.length - 1 : index];
  invariant(chosen !== undefined, "no candidate to draw from");
  return chosen.token;
}

/** Probabilities relative to the first, which is the best. */
function weightsOf(candidates: readonly Candidate[], temperature: number): number[] {
  const best = candidates[0]?.logit ?? 0;
  return candidates.map(({ logit }) =>
    logit === best ? 1 : Math.exp((logit - best) / temperature),
  );
}

export function freshSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;
}

/** Uniform numbers in [0, 1): sfc32 of PractRand, seeded through splitmix32. */
export function seededRandom(seed: number): () => number {
  let mix = (seed ^ Math.floor(seed / 2 ** 32)) >>> 0;
  const next = () => {
    mix = (mix + 0x9e3779b9) >>> 0;
    let z = mix;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  };
  let [a, b, c, counter] = [next(), next(), next(), 1];
  return () => {
    const result = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + result) | 0;
    return (result >>> 0) / 2 ** 32;
  };
}
