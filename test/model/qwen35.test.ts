/** Qwen3.5 on the device against the forward pass in plain loops, with tiny random models. */
import { describe, expect, test } from "bun:test";
import { planMemory } from "../../src/engine/plan.ts";
import { UserError } from "../../src/errors.ts";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { describeModel } from "../../src/model/architectures.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { deviation, feed, loadBytes } from "../helpers/loaded.ts";
import { Qwen35Reference } from "../helpers/qwen35-reference.ts";
import type { TinyModel } from "../helpers/tiny-model.ts";
import { tinyQwen35, type TinyQwen35Options } from "../helpers/tiny-qwen35.ts";

/** Of the standard deviation. The reference rounds keys and values as the cache does. */
const bound = 1e-3;

const tokens = Array.from({ length: 72 }, (_, i) => (7 * i * i + 3 * i + 5) % 160);

function modelOf(tiny: TinyModel) {
  return describeModel(openGgufBytes("tiny.gguf", tiny.forge()));
}

function expectedOf(tiny: TinyModel, text: readonly number[]) {
  return new Qwen35Reference(openGgufBytes("tiny.gguf", tiny.forge())).run(text);
}

const skipped = describe.skipIf(noGpu !== undefined);

skipped("Qwen3.5 computes what the papers say", () => {
  test.each<[string, TinyQwen35Options]>([
    ["dense", { architecture: "qwen35" }],
    ["with the embedding table as its head", { architecture: "qwen35", tied: true }],
    ["with blocks for further tokens, which it leaves out", { architecture: "qwen35", extra: 2 }],
    ["with as many key heads as value heads", { architecture: "qwen35", keyHeads: 4 }],
    ["with six value heads of two", { architecture: "qwen35", valueHeads: 6 }],
    ["with a wide state", { architecture: "qwen35", stateWidth: 128, layers: 2 }],
    ["with a convolution over two inputs", { architecture: "qwen35", taps: 2 }],
    ["with whole heads that are rotated", { architecture: "qwen35", rotary: 32 }],
    ["with attention first", { architecture: "qwen35", layers: 2, recurrent: [false, true] }],
    ["without attention", { architecture: "qwen35", layers: 2, recurrent: [true, true] }],
    ["without recurrence", { architecture: "qwen35", layers: 2, recurrent: [false, false] }],
    ["as a mixture of experts", { architecture: "qwen35moe" }],
    ["with gate and up in one tensor", { architecture: "qwen35moe", merged: true, layers: 2 }],
    ["without a shared expert", { architecture: "qwen35moe", shared: false, layers: 2 }],
    ["with all experts in use", { architecture: "qwen35moe", used: 7, layers: 2 }],
    ["with one expert", { architecture: "qwen35moe", experts: 1, used: 1, layers: 2 }],
    ["with quantized experts", { architecture: "qwen35moe", expertType: "Q8_0", layers: 2 }],
    [
      "with gate and up of different types",
      { architecture: "qwen35moe", expertType: "Q4_1", upType: "F16", layers: 2 },
    ],
    ["Qwen3-Next", { architecture: "qwen3next" }],
    ["Qwen3-Next with six value heads of two", { architecture: "qwen3next", valueHeads: 6 }],
  ])("%s", async (_, options) => {
    const tiny = tinyQwen35(options);
    const { logits, margins } = expectedOf(tiny, tokens);
    const engine = await loadBytes(tiny.forge());
    try {
      const actual = feed(engine, tokens);
      // Where a router is not sure, rounding may choose another expert.
      const isSure = (_unused: unknown, position: number) => (margins[position] ?? 0) > 1e-2;
      expect(deviation(actual.filter(isSure), logits.filter(isSure))).toBeLessThan(bound);
      expect(margins.filter((margin) => margin > 1e-2).length).toBeGreaterThan(48);
    } finally {
      engine.close();
    }
  });
});

skipped.each<[string, TinyQwen35Options]>([
  ["dense", { architecture: "qwen35" }],
  ["a mixture", { architecture: "qwen35moe" }],
])("what %s carries from step to step", (_, options) => {
  const bytes = tinyQwen35(options).forge();

  test.each([
    ["rounding aside", false],
    ["to the bit, if it is to be deterministic", true],
  ])("does not depend on how a text is cut, %s", async (_unused, deterministic) => {
    const engine = await loadBytes(bytes, { deterministic });
    const whole = feed(engine, tokens);
    for (const length of [1, 7, 64]) {
      const error = deviation(feed(engine, tokens, length), whole);
      expect(error).toBeLessThanOrEqual(deterministic ? 0 : 1e-3);
    }
    engine.close();
  });

  test("is forgotten when another text begins", async () => {
    const engine = await loadBytes(bytes);
    const [first] = feed(engine, tokens.slice(0, 1));
    feed(engine, tokens.toReversed());
    feed(engine, tokens.toReversed(), 1);
    const again = feed(engine, tokens.slice(0, 1));
    engine.close();
    expect(again[0]).toEqual(first as Float32Array);
  });
});

describe("what a model needs", () => {
  test("are caches of its attention layers and states of the others", () => {
    const model = modelOf(tinyQwen35({ architecture: "qwen35", layers: 9, extra: 1 }));
    expect(model.config.layerCount).toBe(9);
    expect(model.cache.layers).toHaveLength(2);
    expect(Object.keys(model.states)).toHaveLength(2 * 7);
    // Four inputs of 2 · 2 · 32 + 4 · 32 channels; four heads of 32 × 32.
    expect(model.states["past of layer 0"]).toBe(4 * 256 * 4);
    expect(model.states["memory of layer 8"]).toBe(4 * 32 * 32 * 4);
  });

  test.skipIf(noGpu !== undefined)("is planned with its states", () => {
    const model = modelOf(tinyQwen35({ architecture: "qwen35" }));
    const plan = planMemory(testGpu().device, model, { contextTokens: 64 });
    const least = Object.values(model.states).reduce((sum, bytes) => sum + bytes, 0);
    expect(plan.stateBytes).toBeGreaterThanOrEqual(least * plan.sequenceCapacity);
    const { weightBytes, activationBytes, cacheBytes, stateBytes } = plan;
    expect(plan.totalBytes).toBe(weightBytes + activationBytes + cacheBytes + stateBytes);
  });

  test("counts only the experts that take a row", () => {
    const of = (used: number) =>
      modelOf(tinyQwen35({ architecture: "qwen35moe", used, layers: 2 })).stepBytes;
    // Three matrices of 64 × 96 floats in each of two layers.
    expect(of(3) - of(2)).toBe(2 * 3 * 64 * 96 * 4);
  });
});

describe("what zinc cannot run is refused:", () => {
  const refusalOf = (options: TinyQwen35Options, edit = (tiny: TinyModel) => tiny) => {
    try {
      modelOf(edit(tinyQwen35(options))).weights.declared();
    } catch (error) {
      if (error instanceof UserError) return error.message;
      throw error;
    }
    return "nothing";
  };

  test.each<[string, TinyQwen35Options, string]>([
    ["too many experts", { architecture: "qwen35moe", experts: 513 }, "3 of 513 experts"],
    [
      "too many of them at once",
      { architecture: "qwen35moe", experts: 20, used: 17 },
      "17 of 20 experts",
    ],
    ["a state of an odd width", { architecture: "qwen35", stateWidth: 24 }, "24 wide keys"],
    ["a state that is too wide", { architecture: "qwen35", stateWidth: 288 }, "288 wide keys"],
    ["a long convolution", { architecture: "qwen35", taps: 9 }, "a convolution over 9 inputs"],
    ["one over nothing", { architecture: "qwen35", taps: 1 }, "a convolution over 1 inputs"],
    [
      "value heads that cannot share keys",
      { architecture: "qwen35", valueHeads: 5 },
      "5 value heads cannot share 2 key heads evenly",
    ],
    [
      "flags of too few layers",
      { architecture: "qwen35", layers: 4, recurrent: [true, false] },
      "2 of 4 layers are said to be recurrent or not",
    ],
    [
      "more experts in use than there are",
      { architecture: "qwen35moe", used: 8 },
      "must be 1 to 7",
    ],
  ])("%s", (_, options, message) => {
    expect(refusalOf({ layers: 1, ...options })).toContain(message);
  });

  test("an early conversion of Qwen3-Next", () => {
    const message = refusalOf({ architecture: "qwen3next", layers: 1 }, (tiny) =>
      tiny.matrix("blk.0.ssm_in.weight", 384, 96),
    );
    expect(message).toContain("an early conversion that mixes attn_qkv and attn_gate in ssm_in");
  });
});
