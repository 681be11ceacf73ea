/** Llama on the device against the forward pass of the papers, with tiny random models. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { dtypes } from "../../src/tensor/dtype.ts";
import { scalar, text } from "../helpers/gguf-forge.ts";
import { noGpu } from "../helpers/gpu.ts";
import { referenceLogits } from "../helpers/llama-reference.ts";
import { deviation, feed, loadBytes } from "../helpers/loaded.ts";
import { tinyLlama, type TinyOptions } from "../helpers/tiny-llama.ts";

// A software driver compiles kernels slowly the first time.
setDefaultTimeout(120_000);

/** Of the standard deviation: what half precision in the cache costs, and some. */
const bound = 0.01;

function someTokens(count: number, vocabulary = 40): number[] {
  return Array.from({ length: count }, (_, i) => (7 * i + 3 * (i >> 3)) % vocabulary);
}

/** Largest deviation from the reference at any position. */
async function errorOf(options: TinyOptions, tokens = someTokens(24)): Promise<number> {
  const tiny = tinyLlama(options);
  const engine = await loadBytes(tiny.bytes);
  try {
    return deviation(feed(engine, tokens), referenceLogits(tiny, tokens));
  } finally {
    engine.close();
  }
}

describe.skipIf(noGpu !== undefined)("Llama computes what the papers say", () => {
  test.each<[string, TinyOptions]>([
    ["with a head of its own", {}],
    ["with the embedding table as its head", { tied: true }],
    ["with biases", { biases: true }],
    ["with divisors of its frequencies", { ropeFreqs: [1, 1.2, 1.5, 2, 3, 5, 8, 8] }],
    ["with one key/value head for all", { kvHeads: 1 }],
    ["with as many key/value heads as heads", { kvHeads: 4 }],
    ["with three query heads a key/value head", { heads: 6, kvHeads: 2 }],
    ["with heads narrower than its width", { headWidth: 8 }],
    ["with heads wider than its width", { headWidth: 48 }],
    ["with one layer", { layers: 1 }],
    ["with five layers", { layers: 5 }],
    ["with a vocabulary of an odd size", { vocabulary: 37 }],
    ["with a width that is no power of two", { width: 72, feedForward: 200 }],
    ["with another base of its frequencies", { ropeBase: 500_000 }],
    ["with a large epsilon", { epsilon: 0.1 }],
  ])("%s", async (_, options) => {
    expect(await errorOf(options, someTokens(24, 37))).toBeLessThan(bound);
  });

  test.each(dtypes)("with matrices of %s", async (dtype) => {
    const shape = { width: 256, headWidth: 64, feedForward: 256, layers: 1 };
    expect(await errorOf({ dtype, ...shape }, someTokens(12))).toBeLessThan(bound);
  });
});

describe.skipIf(noGpu !== undefined)("what a file adds counts:", () => {
  // Were it ignored, the reference without it would be met.
  test.each<[string, TinyOptions, TinyOptions]>([
    ["biases", { biases: true }, {}],
    ["divisors", { ropeFreqs: [1, 1.2, 1.5, 2, 3, 5, 8, 8] }, {}],
    ["the attention scale", { pairs: { "llama.attention.scale": scalar("f32", 1) } }, {}],
    ["the base", { ropeBase: 500_000 }, {}],
    [
      "linear scaling",
      {
        pairs: {
          "llama.rope.scaling.type": text("linear"),
          "llama.rope.scaling.factor": scalar("f32", 4),
        },
      },
      {},
    ],
  ])("%s", async (_, options, without) => {
    const tokens = someTokens(24);
    const engine = await loadBytes(tinyLlama(options).bytes);
    const logits = feed(engine, tokens);
    engine.close();
    expect(deviation(logits, referenceLogits(tinyLlama(without), tokens))).toBeGreaterThan(0.05);
  });

  test("a head with the values of the table gives the same logits as the table", async () => {
    const tokens = someTokens(24);
    const [tied, twin] = [{ tied: true }, { twin: true }].map((options) => tinyLlama(options));
    const both = await Promise.all(
      [tied, twin].map((tiny) => loadBytes(tiny?.bytes ?? new Uint8Array())),
    );
    const [first, second] = both.map((engine) => feed(engine, tokens));
    for (const engine of both) engine.close();
    expect(first).toEqual(second ?? []);
  });
});
