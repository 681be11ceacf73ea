/** Choosing a token: literal logits in, literal tokens out. */
import { describe, expect, test } from "bun:test";
import {
  argmax,
  freshSeed,
  HostSampler,
  keepMinP,
  keepTopP,
  seededRandom,
  topCandidates,
} from "../../src/engine/sampler.ts";
import { completeSampling, repeatWindow, type Sampling } from "../../src/engine/sampling.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

/** No filter, no penalty, and the given changes. */
function samplerWith(given: Partial<Sampling> = {}): HostSampler {
  const neutral = { temperature: 1, topK: 0, topP: 1, minP: 0, seed: 1 };
  return new HostSampler(completeSampling({ ...neutral, ...given }));
}

/** Logits of these probabilities. */
function logitsOf(...probabilities: number[]): Float32Array {
  return Float32Array.from(probabilities, Math.log);
}

/** Every token that comes up in many draws. */
function drawn(given: Partial<Sampling>, logits: Float32Array, count = 2000): number[] {
  const sampler = samplerWith(given);
  const tokens = new Set<number>();
  for (let i = 0; i < count; i++) tokens.add(sampler.sample(logits));
  return [...tokens].toSorted((a, b) => a - b);
}

const falling = logitsOf(0.4, 0.3, 0.15, 0.1, 0.05);

describe("argmax", () => {
  test.each([
    ["the largest", [1, 3, 2], 1],
    ["the last", [1, 2, 3], 2],
    ["of negative values alone", [-5, -1, -3], 1],
    ["the first of equals", [2, 7, 7, 1, 7], 1],
    ["of all equal", [0, 0, 0], 0],
    ["of values of which one is infinite", [1, Infinity, 2], 1],
    ["of banned ones and one that is not", [-Infinity, -Infinity, -9], 2],
    ["of one", [4], 0],
  ])("%s", (_, values, expected) => {
    expect(argmax(Float32Array.from(values))).toBe(expected);
  });
});

describe("temperature", () => {
  test.each([0, 1e-9, 1e-300])("%d takes the best, whatever the other filters", (temperature) => {
    expect(drawn({ temperature }, falling, 50)).toEqual([0]);
    expect(drawn({ temperature, topK: 3, topP: 0.2, minP: 0.9 }, falling, 50)).toEqual([0]);
    expect(drawn({ temperature }, Float32Array.of(-5, -1, -3), 50)).toEqual([1]);
  });

  test("0 takes the first of equals, 1e-9 any of them", () => {
    const ties = Float32Array.of(1, 4, 4);
    expect(drawn({ temperature: 0 }, ties, 50)).toEqual([1]);
    expect(drawn({ temperature: 1e-9 }, ties, 50)).toEqual([1, 2]);
  });

  test("0 needs no seed", () => {
    expect(samplerWith({ temperature: 0, seed: undefined }).sample(falling)).toBe(0);
  });

  test("comes after the filters: a hot draw stays among what they keep", () => {
    expect(drawn({ temperature: 100, topP: 0.7 }, falling)).toEqual([0, 1]);
  });
});

describe("top-k", () => {
  test.each([
    [1, [0]],
    [2, [0, 1]],
    [4, [0, 1, 2, 3]],
    [5, [0, 1, 2, 3, 4]],
    [6, [0, 1, 2, 3, 4]],
    [1 << 30, [0, 1, 2, 3, 4]],
    [0, [0, 1, 2, 3, 4]],
  ])("%d keeps %j", (topK, expected) => {
    expect(drawn({ topK }, falling)).toEqual(expected);
  });

  test("of equals keeps those with the lowest ids", () => {
    expect(topCandidates(Float32Array.of(5, 7, 7, 7), 2).map(({ token }) => token)).toEqual([1, 2]);
  });

  test("is the head of the sorted list, for any logits", () => {
    const random = new SeededRandom(1);
    for (const [size, count] of [
      [1000, 1],
      [1000, 40],
      [5000, 64],
      [300, 299],
      [50, 50],
    ] as const) {
      // Few distinct values, so that there are many ties.
      const logits = Float32Array.from({ length: size }, () => random.below(200) - 100);
      const sorted = Array.from(logits, (logit, token) => ({ token, logit })).toSorted(
        (a, b) => b.logit - a.logit || a.token - b.token,
      );
      expect(topCandidates(logits, count)).toEqual(sorted.slice(0, count));
    }
  });
});

describe("top-p", () => {
  const kept = (topP: number) =>
    keepTopP(topCandidates(falling, 0), topP).map(({ token }) => token);

  test.each([
    [1e-9, [0]],
    [0.39, [0]],
    [0.41, [0, 1]],
    [0.69, [0, 1]],
    [0.71, [0, 1, 2]],
    [0.96, [0, 1, 2, 3, 4]],
    [1, [0, 1, 2, 3, 4]],
  ])("%d keeps %j", (topP, expected) => {
    expect(kept(topP)).toEqual(expected);
    expect(drawn({ topP }, falling)).toEqual(expected);
  });

  test("counts the share of what top-k kept", () => {
    // Of 0.4 and 0.3, the first has 57 %.
    expect(drawn({ topK: 2, topP: 0.5 }, falling)).toEqual([0]);
    expect(drawn({ topK: 2, topP: 0.6 }, falling)).toEqual([0, 1]);
  });

  test("just below 1 keeps all but what has no probability", () => {
    const logits = Float32Array.of(0, 0, -Infinity);
    expect(drawn({ topP: 1 - 1e-12 }, logits)).toEqual([0, 1]);
  });
});

describe("min-p", () => {
  test.each([
    [0, [0, 1, 2, 3, 4]],
    [0.12, [0, 1, 2, 3, 4]],
    [0.13, [0, 1, 2, 3]],
    [0.3, [0, 1, 2]],
    [0.7, [0, 1]],
    [0.8, [0]],
    [1, [0]],
  ])("%d keeps %j", (minP, expected) => {
    expect(keepMinP(topCandidates(falling, 0), minP).map(({ token }) => token)).toEqual(expected);
    expect(drawn({ minP }, falling)).toEqual(expected);
  });

  test("1 keeps all that are as good as the best", () => {
    expect(drawn({ minP: 1 }, Float32Array.of(3, 1, 3))).toEqual([0, 2]);
  });
});

describe("all filters together", () => {
  test.each([
    [{ topK: 4, topP: 0.9, minP: 0.3 }, [0, 1, 2]],
    [{ topK: 2, topP: 0.99, minP: 0.01 }, [0, 1]],
    [{ topK: 5, topP: 0.5, minP: 0.01 }, [0, 1]],
    [{ topK: 40, topP: 0.95, minP: 0.05 }, [0, 1, 2, 3]],
  ])("%j keep %j", (given, expected) => {
    expect(drawn(given, falling)).toEqual(expected);
  });
});

describe("the repeat penalty", () => {
  const next = (prompt: number[], logits: number[], repeatPenalty = 2) => {
    const sampler = samplerWith({ temperature: 0, repeatPenalty });
    sampler.prime(prompt);
    return sampler.sample(Float32Array.from(logits));
  };

  test("halves positive logits of tokens that were there, once", () => {
    expect(next([0], [3, 1.6])).toBe(1);
    expect(next([0], [3, 1.4])).toBe(0);
    expect(next([0, 0, 0], [3, 1.4])).toBe(0);
  });

  test("doubles negative ones", () => {
    expect(next([0], [-1, -1.9])).toBe(1);
    expect(next([0], [-1, -2.1])).toBe(0);
  });

  test("below 1 prefers repetition", () => {
    expect(next([1], [3, 2], 0.5)).toBe(1);
  });

  test("remembers what was sampled", () => {
    const sampler = samplerWith({ temperature: 0, repeatPenalty: 2 });
    const logits = Float32Array.of(3, 2, 1.8);
    expect([sampler.sample(logits), sampler.sample(logits), sampler.sample(logits)]).toEqual([
      0, 1, 2,
    ]);
  });

  test("forgets what is longer ago than its window", () => {
    const long = [0, ...Array<number>(repeatWindow).fill(1)];
    expect(next(long, [3, 0, 2])).toBe(0);
    expect(next(long.slice(0, -1), [3, 0, 2])).toBe(2);
  });

  test("does not mind tokens that the vocabulary does not have", () => {
    expect(next([7, -1, 2 ** 31], [1, 2])).toBe(1);
  });
});

describe("presence and frequency penalties", () => {
  const take = (given: Partial<Sampling>, logits: number[], count: number) => {
    const sampler = samplerWith({ temperature: 0, ...given });
    sampler.prime([1]);
    return Array.from({ length: count }, () => sampler.sample(Float32Array.from(logits)));
  };

  test("presence subtracts once from what was generated, the prompt left alone", () => {
    expect(take({ presencePenalty: 0.5 }, [1, 0.7, 0], 4)).toEqual([0, 1, 0, 0]);
  });

  test("frequency subtracts each time", () => {
    expect(take({ frequencyPenalty: 0.5 }, [1.2, 0, -9], 5)).toEqual([0, 0, 0, 1, 0]);
  });

  test("negative ones reward", () => {
    expect(take({ frequencyPenalty: -1 }, [1, 0.5], 3)).toEqual([0, 0, 0]);
  });

  test("add up", () => {
    expect(take({ presencePenalty: 0.25, frequencyPenalty: 0.25 }, [1, 0.6, -9], 2)).toEqual([
      0, 1,
    ]);
    expect(take({ presencePenalty: 0.25, frequencyPenalty: 0.1 }, [1, 0.6, -9], 2)).toEqual([0, 0]);
  });
});

describe("logit bias", () => {
  const biased = (...pairs: [number, number][]) => ({ logitBias: new Map(pairs) });

  test("of minus infinity bans, also the best", () => {
    expect(drawn({ ...biased([0, -Infinity], [2, -Infinity]) }, falling)).toEqual([1, 3, 4]);
    expect(drawn({ temperature: 0, ...biased([0, -Infinity]) }, falling, 10)).toEqual([1]);
  });

  test("lifts a token above others", () => {
    expect(drawn({ temperature: 0, ...biased([4, 100]) }, falling, 10)).toEqual([4]);
    expect(drawn({ ...biased([4, Infinity]) }, falling, 50)).toEqual([4]);
  });

  test("for tokens that the vocabulary does not have changes nothing", () => {
    expect(
      drawn({ temperature: 0, ...biased([5, 100], [-1, 100], [0.5, 100]) }, falling, 10),
    ).toEqual([0]);
  });

  test("leaves the logits that were given as they are", () => {
    const logits = Float32Array.of(1, 2);
    samplerWith({ ...biased([0, 5]), repeatPenalty: 2, presencePenalty: 1 }).sample(logits);
    expect([...logits]).toEqual([1, 2]);
  });
});

describe("the draw", () => {
  /** Counts of each token in many draws. */
  const histogram = (given: Partial<Sampling>, logits: Float32Array, count: number) => {
    const counts = Array<number>(logits.length).fill(0);
    const sampler = samplerWith(given);
    for (let i = 0; i < count; i++) {
      const token = sampler.sample(logits);
      counts[token] = (counts[token] ?? 0) + 1;
    }
    return counts;
  };

  // The seeds are fixed, so these either always pass or never: 5 standard deviations are generous.
  test.each([
    ["as the probabilities say", {}, [0.4, 0.3, 0.15, 0.1, 0.05]],
    [
      "at temperature 0.5 as their squares",
      { temperature: 0.5 },
      [0.561, 0.316, 0.0789, 0.0351, 0.0088],
    ],
    [
      "at temperature 2 as their roots",
      { temperature: 2 },
      [0.3014, 0.261, 0.1846, 0.1507, 0.1066],
    ],
    ["of two, as their shares", { topK: 2 }, [0.5714, 0.4286, 0, 0, 0]],
  ])("comes out %s", (_, given, probabilities) => {
    const count = 20_000;
    histogram(given, falling, count).forEach((seen, token) => {
      const p = probabilities[token] ?? 0;
      expect(Math.abs(seen - p * count)).toBeLessThanOrEqual(
        5 * Math.sqrt(count * p * (1 - p)) + 3,
      );
    });
  });

  test("is the same for the same seed and another for another", () => {
    const texts = [1, 1, 2, 2 ** 40].map((seed) => {
      const sampler = samplerWith({ seed });
      return Array.from({ length: 24 }, () => sampler.sample(falling)).join("");
    });
    expect(texts[0]).toMatchInlineSnapshot(`"111410030321113300111000"`);
    expect(texts[1]).toBe(texts[0] ?? "");
    expect(new Set(texts).size).toBe(3);
  });

  test("without a seed is fresh each time", () => {
    const uniform = new Float32Array(1000);
    const texts = Array.from({ length: 4 }, () => {
      const sampler = samplerWith({ seed: undefined });
      return Array.from({ length: 8 }, () => sampler.sample(uniform)).join();
    });
    expect(new Set(texts).size).toBe(4);
    expect(freshSeed()).toBeGreaterThanOrEqual(0);
  });

  test("takes no token that has no chance, however often", () => {
    expect(drawn({}, Float32Array.of(-Infinity, 0, -Infinity, -200), 5000)).toEqual([1]);
  });
});

describe("random numbers", () => {
  test("are from 0 up to and without 1, and evenly spread", () => {
    const random = seededRandom(5);
    const counts = Array<number>(10).fill(0);
    for (let i = 0; i < 100_000; i++) {
      const value = random();
      if (!(value >= 0 && value < 1)) throw new Error(`${value}`);
      const bin = Math.floor(value * 10);
      counts[bin] = (counts[bin] ?? 0) + 1;
    }
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500);
  });

  test("of neighbouring seeds have nothing in common", () => {
    const first = [0, 1, 2, 3].map((seed) => seededRandom(seed)());
    expect(new Set(first).size).toBe(4);
    expect(Math.max(...first) - Math.min(...first)).toBeGreaterThan(0.2);
  });
});
