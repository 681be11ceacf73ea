/**
 * Models that are spread over devices: what they compute is what they compute on one. Mesa's
 * software driver stands in for all of them, opened twice or thrice.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openBuiltin } from "../../src/builtin/builtin.ts";
import type { DraftJudge, StepCost } from "../../src/engine/draft-account.ts";
import { Engine, type EngineOptions } from "../../src/engine/engine.ts";
import type { StepStats } from "../../src/engine/runner.ts";
import { openGguf, openGgufBytes, type GgufFile } from "../../src/gguf/file.ts";
import { describeModel } from "../../src/model/architectures.ts";
import { cutsOf, partOf } from "../../src/model/part.ts";
import { Gpu } from "../../src/vulkan/gpu.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { feed } from "../helpers/loaded.ts";
import { record, type Wish } from "../helpers/recorded.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";
import { tinyLlama } from "../helpers/tiny-llama.ts";
import { tinyQwen35 } from "../helpers/tiny-qwen35.ts";
import { families, familyTokens } from "../model/families.ts";

setDefaultTimeout(600_000);

const skipped = describe.skipIf(noGpu !== undefined);
const shared = join(import.meta.dir, "../../../shared/models");

/** Opened once: their pipelines take long to compile. */
const gpus: Gpu[] = [];

function openGpus(count: number): readonly Gpu[] {
  const { index } = testGpu().device.physical;
  while (gpus.length < count) gpus.push(Gpu.open({ device: `${index}` }));
  return gpus.slice(0, count);
}

afterAll(() => {
  for (const gpu of gpus.splice(0)) gpu.close();
});

/** Over parts on one device: what counts is what each part computes. */
function loadParts(file: GgufFile, count: number, options: EngineOptions = {}): Promise<Engine> {
  const same = Array.from({ length: count }, () => testGpu());
  return Engine.loadOver(same, () => describeModel(file), options);
}

const tinyModels: Readonly<Record<string, { bytes: () => Uint8Array; tokens: readonly number[] }>> =
  {
    ...Object.fromEntries(
      Object.entries(families).map(([name, build]) => {
        const model = build();
        return [name, { bytes: () => model.forge(), tokens: familyTokens(model).slice(0, 40) }];
      }),
    ),
    ...Object.fromEntries(
      (["qwen35", "qwen35moe", "qwen3next"] as const).map((architecture) => {
        const tokens = Array.from({ length: 40 }, (_unused, i) => (7 * i * i + 3 * i + 5) % 160);
        return [architecture, { bytes: () => tinyQwen35({ architecture }).forge(), tokens }];
      }),
    ),
    "qwen35 whose head is its embedding table": {
      bytes: () => tinyQwen35({ architecture: "qwen35", tied: true }).forge(),
      tokens: [5, 15, 39, 77, 129],
    },
  };

skipped("the logits are those of one device, to the bit:", () => {
  test.each(Object.keys(tinyModels))("%s", async (name) => {
    const { bytes, tokens = [] } = tinyModels[name] ?? {};
    const file = openGgufBytes("tiny.gguf", bytes?.() ?? new Uint8Array());
    const partCount = cutsOf(describeModel(file)).length + 1;
    const one = await loadParts(file, 1, { contextTokens: 64 });
    const expected = feed(one, tokens, 32);
    one.close();
    expect(partCount).toBeGreaterThan(1);
    for (const count of new Set([2, Math.min(partCount, 4)])) {
      const several = await loadParts(file, count, { contextTokens: 64 });
      expect(several.plan.stages).toHaveLength(count);
      expect(feed(several, tokens, 32)).toEqual(expected);
      several.close();
    }
  });
});

describe("a part", () => {
  const named = (name: string) => {
    const { bytes } = tinyModels[name] ?? {};
    return describeModel(openGgufBytes("tiny.gguf", bytes?.() ?? new Uint8Array()));
  };
  const outside = (name: string, first: number, end: number) =>
    partOf(named(name), { first, end })
      .weights.map(({ tensor }) => tensor.name)
      .filter((tensor) => !tensor.startsWith("blk."));

  test("has the embedding with the first layer and the head with the last", () => {
    expect(outside("llama", 0, 1)).toEqual(["token_embd.weight"]);
    expect(outside("llama", 1, 2)).toEqual([]);
    expect(outside("llama", 2, 3).toSorted()).toEqual(["output.weight", "output_norm.weight"]);
  });

  test("has the same table at both ends where they share it", () => {
    const name = "qwen35 whose head is its embedding table";
    expect(outside(name, 0, 1)).toEqual(["token_embd.weight"]);
    expect(outside(name, 4, 5).toSorted()).toEqual(["output_norm.weight", "token_embd.weight"]);
  });

  test("has the embeddings of all layers with the first, which hands them on", () => {
    expect(outside("gemma4 small", 0, 1)).toContain("per_layer_token_embd.weight");
    expect(outside("gemma4 small", 1, 8)).not.toContain("per_layer_token_embd.weight");
    expect(named("gemma4 small").carried).toEqual(["x", "embeddings"]);
  });

  test("ends nowhere between a cache and those who borrow it", () => {
    expect(cutsOf(named("gemma4 small"))).toEqual([1, 2, 3]);
    expect(cutsOf(named("gemma4 large"))).toEqual([1, 2, 3, 4]);
  });

  test("has the caches and states of its layers", () => {
    const hybrid = named("qwen35");
    const last = partOf(hybrid, { first: 3, end: 5 });
    expect(last.caches).toEqual([0]);
    expect(Object.keys(last.states)).toEqual(["past of layer 4", "memory of layer 4"]);
    expect(partOf(hybrid, { first: 0, end: 3 }).caches).toEqual([]);
  });
});

/** Ids that mean nothing; two prompts of different seeds have nothing in common. */
function prompt(length: number, seed: number): number[] {
  const random = new SeededRandom(seed + 1);
  return Array.from({ length }, () => 300 + random.below(3000));
}

const sparks = [
  ["spark-llama", undefined],
  ["spark-qwen35, a hybrid", join(shared, "spark-qwen35-Q4_K_M.gguf")],
  ["spark-qwen35moe", join(shared, "spark-qwen35moe-Q4_K_M.gguf")],
] as const;

describe.each(sparks)("over two devices, %s", (_name, path) => {
  const missing = noGpu ?? (path === undefined || existsSync(path) ? undefined : "no ../shared");
  const options = { parallel: 4, contextTokens: 320, cacheTokens: 640, deterministic: true };

  /** What a use gives on one device, and on two. */
  async function both<T>(use: (engine: Engine) => Promise<T>): Promise<[one: T, two: T]> {
    const results: T[] = [];
    for (const count of [1, 2]) {
      using file = path === undefined ? await openBuiltin() : await openGguf(path);
      const engine = await Engine.loadOver(openGpus(count), () => describeModel(file), options);
      results.push(await use(engine));
      expect(engine.stats).toMatchObject({ waitingCount: 0, runningCount: 0 });
      engine.forget();
      expect(engine.stats.freeBlockCount * 32).toBe(engine.plan.cacheTokens);
      engine.close();
    }
    const [one, two] = results;
    if (one === undefined || two === undefined) throw new Error("two results are expected");
    return [one, two];
  }

  test.skipIf(missing !== undefined)("makes the same texts, alone and in company", async () => {
    const wishes: Wish[] = [1, 5, 33, 64, 150].map((length, i) => ({
      prompt: prompt(length, i),
      maxTokens: 6 + i,
      ...(i % 2 === 1 && { sampling: { temperature: 0.9, seed: i } }),
    }));
    const [one, two] = await both((engine) =>
      Promise.all(wishes.map((wish) => record(engine, wish))),
    );
    expect(two).toEqual(one);
  });

  test.skipIf(missing !== undefined)("goes on behind what it has computed", async () => {
    const [one, two] = await both(async (engine) => {
      const first = await record(engine, { prompt: prompt(155, 7), maxTokens: 50 });
      const next = [...prompt(155, 7), ...first.tokens, ...prompt(20, 8)];
      const warm = await record(engine, { prompt: next, maxTokens: 8 });
      engine.forget();
      const cold = await record(engine, { prompt: next, maxTokens: 8 });
      expect(warm).toEqual({ ...cold, cachedTokens: 204 });
      return { first, warm };
    });
    expect(two).toEqual(one);
  });

  test.skipIf(missing !== undefined)("submits once a device and step", async () => {
    const [one, two] = await both(async (engine) => {
      const steps: StepStats[] = [];
      engine.onStep = (stats) => steps.push({ ...stats });
      await record(engine, { prompt: prompt(20, 3), maxTokens: 6 });
      return steps.slice(1);
    });
    const submits = (steps: readonly StepStats[]) => steps.map((step) => step.submits);
    expect(submits(one)).toEqual([1, 1, 1, 1, 1]);
    expect(submits(two)).toEqual([2, 2, 2, 2, 2]);
    // The copies between them are no dispatches.
    const dispatches = ([step]: readonly StepStats[]) => step?.dispatches;
    expect(dispatches(two)).toBe(dispatches(one) ?? 0);
  });
});

skipped.each(["llama", "qwen35", "gemma4 small"])("embeddings of %s", (name) => {
  test("are those of one device, to the bit, alone and in company", async () => {
    const { bytes, tokens = [] } = tinyModels[name] ?? {};
    const file = openGgufBytes("tiny.gguf", bytes?.() ?? new Uint8Array());
    const texts = [tokens, tokens.slice(0, 9), tokens.slice(3)];
    const [one = [], two] = await Promise.all(
      [1, 2].map(async (count) => {
        const options = { parallel: 4, contextTokens: 64, deterministic: true };
        const engine = await loadParts(file, count, options);
        const embed = (text: readonly number[]) => engine.embed({ prompt: text });
        const vectors = [await embed(tokens), ...(await Promise.all(texts.map(embed)))];
        engine.close();
        return vectors;
      }),
    );
    expect(one[0]).toHaveLength(describeModel(file).config.width);
    expect(one[1]).toEqual(one[0]);
    expect(two).toEqual(one);
  });
});

skipped("what steps cost", () => {
  test("is learnt from a text alone, not where steps of several overlap", async () => {
    const file = openGgufBytes("tiny.gguf", tinyLlama({ contextLength: 4096 }).bytes);
    const seen: StepCost[] = [];
    const draftJudge: DraftJudge = {
      observe: (cost) => seen.push(cost),
      knows: () => false,
      worthwhile: () => 0,
    };
    const engine = await loadParts(file, 2, { parallel: 2, drafts: "ngram", draftJudge });
    const wish = { prompt: [5, 6, 7, 8], maxTokens: 12 };
    await record(engine, wish);
    const plain = { texts: 1, rows: 1, tokens: 1, isPlain: true };
    expect(seen.length).toBeGreaterThan(8);
    for (const cost of seen.splice(0)) expect(cost).toMatchObject(plain);
    await Promise.all([record(engine, wish), record(engine, { ...wish, prompt: [9, 10] })]);
    expect(seen.length).toBeLessThan(3);
    engine.close();
  });
});

skipped("chunks of a prompt", () => {
  test.each([
    ["of attention alone", () => tinyLlama({ contextLength: 4096 }).bytes],
    ["of a hybrid", () => tinyQwen35({ architecture: "qwen35" }).forge()],
  ])("that are under way together make what they make one by one, %s", async (_unused, bytes) => {
    const file = openGgufBytes("tiny.gguf", bytes());
    const wish = { prompt: Array.from({ length: 1500 }, (_u, i) => (i * 7) % 40), maxTokens: 4 };
    const fed = (engine: Engine) => {
      const sequence = engine.createSequence();
      const logits = engine.append(sequence, wish.prompt).slice();
      engine.release(sequence);
      return logits;
    };
    const one = await loadParts(file, 1);
    const expected = [await record(one, wish), fed(one)];
    one.close();
    const two = await loadParts(file, 2);
    const rows: number[] = [];
    two.onStep = (step) => rows.push(step.rows);
    expect([await record(two, wish), fed(two)]).toEqual(expected);
    expect(rows.slice(0, 2)).toEqual([512, 512]);
    two.close();
  });
});

skipped.each([1, 2])("beside a text that the host samples, on %d", (count) => {
  test("sequences are fed by hand, and both get what they get alone", async () => {
    const file = openGgufBytes("tiny.gguf", tinyLlama({ contextLength: 4096 }).bytes);
    const engine = await loadParts(file, count, { parallel: 4 });
    const wishes: Wish[] = [3, 9].map((length) => ({
      prompt: Array.from({ length }, (_u, i) => (i * 7 + length) % 40),
      maxTokens: 12,
    }));
    const fed = [5, 6, 7, 8];
    const alone = await Promise.all(wishes.map((wish) => record(engine, wish)));
    const [expected] = feed(engine, fed).slice(-1);
    engine.forget();
    const found: Float32Array[] = [];
    engine.onStep = () => queueMicrotask(() => found.push(...feed(engine, fed).slice(-1)));
    expect(await Promise.all(wishes.map((wish) => record(engine, wish)))).toEqual(alone);
    engine.onStep = undefined;
    expect(found.length).toBeGreaterThan(10);
    for (const logits of found) expect(logits).toEqual(expected ?? new Float32Array());
    engine.close();
  });
});

skipped("a model that does not fit one device", () => {
  const file = openGgufBytes("tiny.gguf", families["llama"]?.().forge() ?? new Uint8Array());

  test("fits two with the same memory each", async () => {
    const whole = await loadParts(file, 1, { contextTokens: 256 });
    const { totalBytes } = whole.plan;
    whole.close();
    const memoryBytes = [Math.ceil(totalBytes * 0.95)];
    const load = (count: number) => loadParts(file, count, { contextTokens: 256, memoryBytes });
    await expect(load(1)).rejects.toThrow(/tiny llama needs .+ and llvmpipe .+ has .+ free/);
    const engine = await load(2);
    for (const stage of engine.plan.stages) {
      expect(stage.totalBytes).toBeLessThanOrEqual(stage.freeBytes);
      expect(stage.freeBytes).toBe(memoryBytes[0] ?? 0);
    }
    expect(engine.plan.weightBytes).toBeGreaterThan(0);
    engine.close();
  });
});
