/**
 * Embeddings: what a model makes of a text behind its last norm, pooled. The head turns the same
 * into logits, which are known to be right.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { EmbeddingPool } from "../../src/engine/embedding.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { HostSampler } from "../../src/engine/sampler.ts";
import { defaultSampling } from "../../src/engine/sampling.ts";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { dequantize } from "../../src/tensor/dequantize.ts";
import { noGpu } from "../helpers/gpu.ts";
import { deviation, feed, loadBytes } from "../helpers/loaded.ts";
import type { TinyModel } from "../helpers/tiny-model.ts";
import { tinyQwen35 } from "../helpers/tiny-qwen35.ts";
import { families, familyTokens } from "../model/families.ts";

setDefaultTimeout(120_000);

describe("rows are pooled", () => {
  const rows = Float32Array.of(3, 4, 0, 1);

  test.each([
    ["first", [0.6, 0.8]],
    ["last", [0, 1]],
    // The sum is (3, 5).
    ["mean", [3 / Math.sqrt(34), 5 / Math.sqrt(34)]],
  ] as const)("%s", (pooling, expected) => {
    const whole = new EmbeddingPool(pooling, 2);
    whole.add(0, rows);
    expect([...whole.vector()]).toEqual([...Float32Array.from(expected)]);
    const pieces = new EmbeddingPool(pooling, 2);
    pieces.add(0, rows.subarray(0, 2));
    // A text that had to give its place up brings its first rows again.
    pieces.add(0, rows.subarray(0, 2));
    pieces.add(1, rows.subarray(2));
    expect(pieces.vector()).toEqual(whole.vector());
  });

  test("and cut to fewer dimensions, again of length 1", () => {
    const pool = new EmbeddingPool("first", 4);
    pool.add(0, Float32Array.of(3, 4, 12, 1));
    expect([...pool.vector(2)]).toEqual([...Float32Array.of(0.6, 0.8)]);
    expect([...pool.vector(1)]).toEqual([1]);
  });
});

/** Hidden states of a text beside others: [tokens][width]. */
async function hiddenStates(engine: Engine, prompt: readonly number[]): Promise<Float32Array[]> {
  const { width } = engine.model.config;
  const rows: Float32Array[] = [];
  const text = engine.generate({
    prompt,
    maxTokens: 1,
    sampler: new HostSampler({ ...defaultSampling, temperature: 0 }),
    endTokens: new Set(),
    reuses: false,
    onHidden(position, hidden) {
      for (let i = 0; i * width < hidden.length; i++) {
        rows[position + i] = hidden.slice(i * width, (i + 1) * width);
      }
    },
  });
  for await (const _token of text);
  return rows;
}

/** Head · row */
function logitsOf(head: Float32Array, row: Float32Array): Float32Array {
  return Float32Array.from({ length: head.length / row.length }, (_unused, i) =>
    row.reduce((sum, x, j) => sum + x * (head[i * row.length + j] ?? 0), 0),
  );
}

describe.skipIf(noGpu !== undefined)("the head makes the logits of the hidden states", () => {
  const models: Readonly<Record<string, () => TinyModel>> = {
    ...families,
    qwen35: () => tinyQwen35({ architecture: "qwen35", tied: true }),
  };

  test.each(["llama", "qwen3", "lfm2", "qwen3moe", "gpt-oss", "qwen35"])("of %s", async (name) => {
    const model = models[name]!();
    const bytes = model.forge();
    const file = openGgufBytes("tiny.gguf", bytes);
    const tensor = file.tensor("output.weight") ?? file.tensor("token_embd.weight")!;
    const head = dequantize("F32", file.readTensorSync(tensor));
    const engine = await loadBytes(bytes, { parallel: 4 });
    const tokens = familyTokens(model);
    const expected = feed(engine, tokens);
    const texts = [tokens, tokens, tokens.slice(0, 33), tokens.slice(0, 1)];
    const all = await Promise.all(texts.map((prompt) => hiddenStates(engine, prompt)));
    for (const [i, rows] of all.entries()) {
      const logits = rows.map((row) => logitsOf(head, row));
      expect(deviation(logits, expected.slice(0, texts[i]?.length))).toBeLessThan(0.01);
    }
    engine.close();
  });
});

describe.skipIf(noGpu !== undefined)("a model's embeddings", () => {
  const load = (pooling: number, parallel = 4) =>
    loadBytes(families["llama"]!().set({ pooling_type: pooling }).forge(), { parallel });
  const prompt = Array.from({ length: 70 }, (_unused, i) => (i * 37) % 320);

  test.each([
    ["mean", 1],
    ["first", 2],
    ["last", 3],
  ] as const)("are pooled by the %s as its file says, alone and in company", async (name, type) => {
    const engine = await load(type);
    expect(engine.model.config.pooling).toBe(name);
    const pool = new EmbeddingPool(name, engine.model.config.width);
    (await hiddenStates(engine, prompt)).forEach((row, i) => pool.add(i, row));
    const expected = pool.vector();
    const texts = [prompt, prompt.slice(0, 40), prompt, [...prompt, 5]];
    const [one, , again] = await Promise.all(texts.map((text) => engine.embed({ prompt: text })));
    expect(deviation([one!, again!], [expected, expected])).toBeLessThan(1e-3);
    // What the cache knows by now changes nothing.
    expect(deviation([(await engine.embed({ prompt }))!], [expected])).toBeLessThan(1e-3);
    expect(engine.stats).toMatchObject({ waitingCount: 0, runningCount: 0 });
    engine.close();
  });

  test("end with a signal", async () => {
    const engine = await load(1, 1);
    const controller = new AbortController();
    const running = engine.embed({ prompt, signal: controller.signal });
    controller.abort();
    expect(await running).toBeUndefined();
    engine.close();
  });

  test("are none of a model that ranks", async () => {
    const engine = await load(4, 1);
    expect(engine.embed({ prompt })).rejects.toThrow(
      "tiny llama ranks texts and gives no embeddings",
    );
    engine.close();
  });
});
