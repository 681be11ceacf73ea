/**
 * Caches of other types than halves, in whole models: the texts of trained ones stay what they
 * were, prompts may be cut and shared as before, and what architectures do with a cache goes on.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openBuiltin } from "../../src/builtin/builtin.ts";
import { Engine, type EngineOptions } from "../../src/engine/engine.ts";
import { argmax } from "../../src/engine/sampler.ts";
import { invariant } from "../../src/errors.ts";
import { openGguf } from "../../src/gguf/file.ts";
import { parseKvTypes, type KvTypeName } from "../../src/kernels/kv-type.ts";
import { describeModel } from "../../src/model/architectures.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { deviation, feed, loadBytes } from "../helpers/loaded.ts";
import { record } from "../helpers/recorded.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";
import { tinyLlama } from "../helpers/tiny-llama.ts";
import { families, familyTokens } from "./families.ts";
import twins from "./spark-twins.json";

// A software driver compiles kernels slowly the first time.
setDefaultTimeout(300_000);

const hybridPath = join(import.meta.dir, "../../../shared/models/spark-qwen35-Q8_0.gguf");

function typesOf(name: KvTypeName) {
  const kvTypes = parseKvTypes(name);
  invariant(kvTypes !== undefined, name);
  return kvTypes;
}

async function loadTrained(path: string | undefined, options: EngineOptions): Promise<Engine> {
  using file = path === undefined ? await openBuiltin() : openGguf(path);
  return await Engine.load(testGpu(), describeModel(file), { contextTokens: 320, ...options });
}

/** The text behind a prompt, token by token. */
function continueText(engine: Engine, prompt: readonly number[], count: number): number[] {
  const sequence = engine.createSequence();
  const tokens = [argmax(engine.append(sequence, prompt))];
  while (tokens.length < count) tokens.push(argmax(engine.append(sequence, tokens.slice(-1))));
  engine.release(sequence);
  return tokens;
}

/** Ids that mean nothing. */
function idsOf(length: number, seed: number): number[] {
  const random = new SeededRandom(seed);
  return Array.from({ length }, () => 300 + random.below(3000));
}

describe.skipIf(noGpu !== undefined).each(["q8_0", "tq4", "tq3"] as const)(
  "with a cache of %s",
  (name) => {
    const kvTypes = typesOf(name);
    let engine: Engine;
    beforeAll(async () => {
      engine = await loadTrained(undefined, { kvTypes });
    });
    afterAll(() => engine.close());

    test.each(["capital", "identity", "json", "tool-result"] as const)(
      "the model inside answers %s as with halves",
      (prompt) => {
        const { greedy } = twins.files.Q4_K_M[prompt];
        expect(continueText(engine, twins.prompts[prompt], greedy.length)).toEqual(greedy);
      },
    );

    test("it needs as much memory as the plan says", () => {
      const bytes = { q8_0: 2176, tq4: 1088, tq3: 832 }[name];
      expect(engine.plan).toMatchObject({ cacheBytesPerToken: bytes, halfBytesPerToken: 4096 });
      expect(engine.plan.cacheBytes).toBe(320 * bytes);
    });
  },
);

describe.skipIf(noGpu !== undefined).each([
  ["attention alone", undefined, "tq4"],
  ["attention alone", undefined, "q8_0,tq3"],
  ["a hybrid", hybridPath, "tq3"],
] as const)("a conversation of %s (%p, %s)", (_name, path, name) => {
  test.skipIf(path !== undefined && !existsSync(path))(
    "goes on behind what is cached, also within a block that is copied",
    async () => {
      const engine = await loadTrained(path, { kvTypes: typesOf(name), deterministic: true });
      const first = await record(engine, { prompt: idsOf(75, 1), maxTokens: 30 });
      const second = { prompt: [...idsOf(75, 1), ...first.tokens, ...idsOf(9, 2)], maxTokens: 4 };
      const warm = await record(engine, second);
      engine.forget();
      const cold = await record(engine, second);
      // 104 and not 96: the last block had room, and was copied before it was written to.
      expect([warm.cachedTokens, cold.cachedTokens]).toEqual([104, 0]);
      expect(warm).toEqual({ ...cold, cachedTokens: 104 });
      engine.close();
    },
  );
});

describe.skipIf(noGpu !== undefined).each(["q8_0", "tq4", "tq3,q8_0"] as const)(
  "a prompt in pieces, in a cache of %s,",
  (name) => {
    const tiny = tinyLlama({ contextLength: 160 });
    const tokens = Array.from({ length: 140 }, (_, i) => (i * i + 3 * i) % 40);

    test("gives the logits of the whole, to the bit if it is deterministic", async () => {
      const engine = await loadBytes(tiny.bytes, { kvTypes: typesOf(name), deterministic: true });
      const whole = feed(engine, tokens);
      for (const length of [1, 7, 64]) expect(feed(engine, tokens, length)).toEqual(whole);
      engine.close();
    });

    test("gives them but for codes that lie between two levels", async () => {
      const engine = await loadBytes(tiny.bytes, { kvTypes: typesOf(name) });
      const whole = feed(engine, tokens);
      for (const length of [1, 7]) {
        expect(deviation(feed(engine, tokens, length), whole)).toBeLessThan(0.05);
      }
      engine.close();
    });
  },
);

/**
 * Layers that read others' caches, windows, sinks, heads of several widths. Random models forgive
 * nothing: each value of a key moves what follows, and experts may be others.
 */
describe.skipIf(noGpu !== undefined).each(["gemma4 small", "gpt-oss"])("%s", (family) => {
  const model = families[family]?.();
  invariant(model !== undefined, family);
  const tokens = familyTokens(model);
  const bytes = model.forge();
  const load = (name: KvTypeName) =>
    loadBytes(bytes, { contextTokens: 256, kvTypes: typesOf(name) });

  test("comes near to its logits with halves", async () => {
    const halves = await load("f16");
    const expected = feed(halves, tokens);
    halves.close();
    const engine = await load("q8_0");
    expect(deviation(feed(engine, tokens), expected)).toBeLessThan(0.2);
    engine.close();
  });

  test("gives the same token by token, but for codes that lie between two levels", async () => {
    const engine = await load("tq4");
    expect(deviation(feed(engine, tokens, 1), feed(engine, tokens))).toBeLessThan(0.1);
    engine.close();
  });
});
