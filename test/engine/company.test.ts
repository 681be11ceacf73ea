/**
 * Texts that share an engine: what each gets is what it gets alone. On the model inside zinc, and
 * on the hybrid of ../shared where that folder is.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openBuiltin } from "../../src/builtin/builtin.ts";
import { Engine, type EngineOptions } from "../../src/engine/engine.ts";
import { openGguf } from "../../src/gguf/file.ts";
import { describeModel } from "../../src/model/architectures.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { record, type Recording, type Wish } from "../helpers/recorded.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

setDefaultTimeout(600_000);

const hybridPath = join(import.meta.dir, "../../../shared/models/spark-qwen35-Q8_0.gguf");
const families = [
  ["attention alone", undefined],
  ["a hybrid", hybridPath],
] as const;

async function loadEngine(path: string | undefined, options: EngineOptions): Promise<Engine> {
  const file = path === undefined ? await openBuiltin() : await openGguf(path);
  return Engine.load(testGpu(), describeModel(file), options);
}

/** Ids that mean nothing; two prompts of different seeds have nothing in common. */
function prompt(length: number, seed: number): number[] {
  const random = new SeededRandom(seed + 1);
  return Array.from({ length }, () => 300 + random.below(3000));
}

/** Short and long, greedy and sampled: ends of blocks and of buckets among the lengths. */
const wishes: readonly Wish[] = [
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
  ...[17, 18, 19, 20, 22, 24, 28, 31, 32, 33, 34, 48, 63, 64, 65, 97],
].map((length, i) => ({
  prompt: prompt(length, i),
  maxTokens: 2 + ((i * 5) % 6),
  ...(i % 4 === 3 && { sampling: { temperature: 0.8, seed: i } }),
}));

async function oneByOne(engine: Engine, list: readonly Wish[]): Promise<Recording[]> {
  const recordings: Recording[] = [];
  for (const wish of list) {
    engine.forget();
    recordings.push(await record(engine, wish));
  }
  engine.forget();
  return recordings;
}

const together = (engine: Engine, list: readonly Wish[]) =>
  Promise.all(list.map((wish) => record(engine, wish)));

/** Nobody is inside, and nothing is lost. */
function expectEmpty(engine: Engine): void {
  expect(engine.stats).toMatchObject({ waitingCount: 0, runningCount: 0 });
  engine.forget();
  expect(engine.stats.freeBlockCount * 32).toBe(engine.plan.cacheTokens);
}

describe.each(families)("with %s", (_name, path) => {
  const missing = noGpu ?? (path === undefined || existsSync(path) ? undefined : "no ../shared");

  describe.skipIf(missing !== undefined)("32 texts at once", () => {
    test("equal those made alone to the byte, if results are to be deterministic", async () => {
      const options = { parallel: 32, contextTokens: 256, deterministic: true };
      const engine = await loadEngine(path, options);
      const alone = await oneByOne(engine, wishes);
      let outputs = 0;
      engine.onStep = (step) => (outputs = Math.max(outputs, step.outputs));
      expect(await together(engine, wishes)).toEqual(alone);
      expect(outputs).toBeGreaterThan(8);
      expectEmpty(engine);
      engine.close();
    });

    test("part from those made alone at near-ties at most", async () => {
      const engine = await loadEngine(path, { parallel: 32, contextTokens: 256 });
      const greedy = wishes.map((wish) => ({ ...wish, sampling: { temperature: 0 } }));
      const alone = await oneByOne(engine, greedy);
      const beside = await together(engine, greedy);
      const margins = alone.flatMap(({ tokens, margins: ahead }, i) => {
        const parting = tokens.findIndex((token, at) => token !== beside[i]?.tokens[at]);
        return parting < 0 ? [] : [ahead[parting] ?? 0];
      });
      expect(margins.filter((margin) => margin >= 0.1)).toEqual([]);
      expectEmpty(engine);
      engine.close();
    });
  });

  describe.skipIf(missing !== undefined)("an engine for a few texts", () => {
    let engine: Engine;

    beforeAll(async () => {
      // Three of 105 tokens do not fit the cache.
      const options = { parallel: 4, contextTokens: 320, cacheTokens: 320, deterministic: true };
      engine = await loadEngine(path, options);
    });

    afterAll(() => engine.close());

    test("preempts when its cache is full, and nobody notices", async () => {
      const greedy = Array.from({ length: 4 }, (_unused, i) => ({
        prompt: prompt(40 + i, 100 + i),
        maxTokens: 60,
      }));
      const alone = await oneByOne(engine, greedy);
      const before = engine.stats.totals.preemptions;
      const beside = await together(engine, greedy);
      expect(engine.stats.totals.preemptions).toBeGreaterThan(before);
      expect(beside).toEqual(alone.map((text) => ({ ...text, cachedTokens: expect.any(Number) })));
      expectEmpty(engine);
    });

    test("goes on with a conversation behind what it has computed", async () => {
      const first = await record(engine, { prompt: prompt(155, 7), maxTokens: 50 });
      const second = [...prompt(155, 7), ...first.tokens, ...prompt(20, 8)];
      const warm = await record(engine, { prompt: second, maxTokens: 8 });
      // All but the token that was made last, whose keys nobody needed.
      expect(warm.cachedTokens).toBe(204);
      const [cold] = await oneByOne(engine, [{ prompt: second, maxTokens: 8 }]);
      expect(cold?.cachedTokens).toBe(0);
      expect(warm).toEqual({ ...cold, cachedTokens: 204 } as Recording);
      expectEmpty(engine);
    });

    test("finds a message that two conversations begin with", async () => {
      const system = prompt(165, 9);
      const boundaries = [165];
      const ask = (seed: number) => ({
        prompt: [...system, ...prompt(40, seed)],
        maxTokens: 4,
        boundaries,
      });
      await record(engine, ask(10));
      const warm = await record(engine, ask(11));
      // In whole blocks: what is left over is little, and state is kept at ends of blocks.
      expect(warm.cachedTokens).toBe(160);
      const [cold] = await oneByOne(engine, [ask(11)]);
      expect(warm).toEqual({ ...cold, cachedTokens: 160 } as Recording);
    });

    test("makes the same text of the same seed, in whatever company", async () => {
      const sampling = { temperature: 1.5, topK: 0, topP: 1, minP: 0, seed: 5 };
      const wish = { prompt: prompt(20, 12), maxTokens: 12, sampling };
      const [alone] = await oneByOne(engine, [wish]);
      const others = [6, 7].map((seed) => ({ ...wish, sampling: { ...sampling, seed } }));
      const [one, two, three] = await together(engine, [wish, ...others]);
      expect(one?.tokens).toEqual(alone?.tokens ?? []);
      expect(two?.tokens).not.toEqual(alone?.tokens ?? []);
      expect(three?.tokens).not.toEqual(two?.tokens ?? []);
      expectEmpty(engine);
    });

    test("lets go of a text in every phase, and the others go on", async () => {
      const stays = { prompt: prompt(20, 13), maxTokens: 30 };
      const [alone] = await oneByOne(engine, [stays]);
      const controllers = Array.from({ length: 5 }, () => new AbortController());
      const [waiting, beginning, prefilling, decoding, early] = controllers;
      const ask = (controller: AbortController | undefined, length: number, seed: number) => ({
        prompt: prompt(length, seed),
        maxTokens: 60,
        signal: controller?.signal,
      });
      early?.abort();
      const texts = together(engine, [
        stays,
        { ...ask(beginning, 30, 14), onBegin: () => beginning?.abort() },
        { ...ask(prefilling, 200, 15) },
        { ...ask(decoding, 20, 16), onPrefill: () => setTimeout(() => decoding?.abort()) },
        ask(waiting, 20, 17),
        ask(early, 20, 18),
      ]);
      let steps = 0;
      engine.onStep = () => {
        if (++steps === 1) for (const phase of [waiting, prefilling]) phase?.abort();
      };
      const [stayed, ...gone] = await texts;
      engine.onStep = undefined;
      expect(stayed).toEqual(alone);
      expect(gone.map(({ finish }) => finish)).toEqual(Array(5).fill("cancelled"));
      expect(gone.map(({ tokens }) => tokens.length < 60)).toEqual(Array(5).fill(true));
      expectEmpty(engine);
    });

    test("lets go of a text that is read no further", async () => {
      for await (const _token of engine.generate({
        prompt: prompt(40, 19),
        maxTokens: 100,
        endTokens: new Set(),
        sampler: { prime() {}, sample: () => 300 },
      })) {
        break;
      }
      expectEmpty(engine);
    });

    test("feeds sequences by hand beside texts, while there are places", async () => {
      const alone = engine.createSequence();
      const expected = engine.append(alone, [300, 301, 302]).slice();
      expect(engine.stats.freeBlockCount).toBe(9);
      engine.release(alone);
      const { promise: begun, resolve: onBegin } = Promise.withResolvers<number>();
      const text = record(engine, { prompt: prompt(20, 20), maxTokens: 5, onBegin });
      await begun;
      const by = Array.from({ length: 4 }, () => engine.createSequence());
      for (const sequence of by.slice(0, 3)) {
        expect(engine.append(sequence, [300, 301, 302])).toEqual(expected);
      }
      const refusal = "all 4 places for texts are taken";
      expect(() => engine.append(by[3] ?? alone, [1])).toThrow(refusal);
      for (const sequence of by) engine.release(sequence);
      expect((await text).tokens).toHaveLength(5);
    });
  });
});
