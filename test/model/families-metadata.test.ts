/** What the architectures make of metadata, and that they refuse what cannot be. No device. */
import { describe, expect, test } from "bun:test";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { describeModel } from "../../src/model/architectures.ts";
import { ConfigReader } from "../../src/model/config.ts";
import { readRope } from "../../src/model/rope.ts";
import { TinyModel } from "../helpers/tiny-model.ts";
import { families } from "./families.ts";

type Settings = Parameters<TinyModel["set"]>[0];

function readerOf(settings: Settings): ConfigReader {
  const model = new TinyModel("gemma3", 1).set(settings);
  return new ConfigReader(openGgufBytes("tiny.gguf", model.forge()), "gemma3");
}

describe("windows", () => {
  const window = { "attention.sliding_window": 9 };
  const [near, far] = [9, undefined];

  test.each<[string, Settings, number, (number | undefined)[]]>([
    ["all but every second layer", {}, 2, [near, far, near, far, near]],
    ["all but every third layer", {}, 3, [near, near, far, near, near]],
    ["a period from the file", { "attention.sliding_window_pattern": 4 }, 2, [9, 9, 9, far, 9]],
    [
      "a period of one: none",
      { "attention.sliding_window_pattern": 1 },
      2,
      [far, far, far, far, far],
    ],
    ["a period of zero: all", { "attention.sliding_window_pattern": 0 }, 2, [9, 9, 9, 9, 9]],
    [
      "layer by layer",
      { "attention.sliding_window_pattern": [false, true, true, false, true] },
      2,
      [far, near, near, far, near],
    ],
  ])("of %s", (_name, settings, period, expected) => {
    expect(readerOf({ ...window, ...settings }).windows(5, period)).toEqual(expected);
  });

  test("need as many flags as there are layers", () => {
    const settings = { ...window, "attention.sliding_window_pattern": [true, false] };
    expect(() => readerOf(settings).windows(3, 2)).toThrow("holds 2 numbers for 3 layers");
  });
});

describe("numbers of each layer", () => {
  const limits = { min: 0, max: 8 };

  test("may be one for all", () => {
    expect(readerOf({ n: 3 }).counts("n", 3, limits)).toEqual([3, 3, 3]);
  });

  test("may be a list, of which more than needed is left", () => {
    expect(readerOf({ n: [1, 0, 8, 5] }).counts("n", 3, limits)).toEqual([1, 0, 8]);
  });

  test.each<[string, Settings]>([
    ["gemma3.n is missing", {}],
    ["gemma3.n holds 9", { n: [1, 9, 2] }],
    ["gemma3.n holds -1", { n: [1, 2, -1] }],
    ["gemma3.n holds 2 numbers", { n: [1, 2] }],
  ])("are refused: %s", (message, settings) => {
    expect(() => readerOf(settings).counts("n", 3, limits)).toThrow(message);
  });
});

describe("rope", () => {
  const halves = { headWidth: 8, pairs: "halves" } as const;

  test("is stretched by a factor, unless a layer is not", () => {
    const reader = readerOf({
      "rope.scaling.factor": { float: 4 },
      "rope.freq_base": { float: 16 },
    });
    expect([...readRope(reader, halves).radians]).toEqual([1 / 4, 1 / 8, 1 / 16, 1 / 32]);
    expect([...readRope(reader, { ...halves, stretched: false }).radians]).toEqual([
      1,
      1 / 2,
      1 / 4,
      1 / 8,
    ]);
  });

  test.each([
    ["alone", {}, 0.1 * Math.log(8) + 1],
    ["with what a model has learnt of it", { "rope.scaling.yarn_log_multiplier": { float: 1 } }, 1],
    ["with a factor", { "rope.scaling.attn_factor": { float: 2 } }, 2 * (0.1 * Math.log(8) + 1)],
    ["without extrapolation", { "rope.scaling.yarn_ext_factor": { float: 0 } }, 1],
  ])("of YaRN grows the rotated values: %s", (_name, settings: Settings, expected) => {
    const reader = readerOf({
      "rope.scaling.type": "yarn",
      "rope.scaling.factor": { float: 8 },
      ...settings,
    });
    expect(readRope(reader, halves).magnitude).toBeCloseTo(expected, 6);
  });

  test("of LongRoPE is not stretched by anything but its divisors", () => {
    const reader = readerOf({
      "rope.scaling.type": "longrope",
      "rope.scaling.factor": { float: 8 },
      "rope.scaling.attn_factor": { float: 1.5 },
      "rope.freq_base": { float: 16 },
    });
    const rope = readRope(reader, { ...halves, divisors: [1, 1, 2, 4] });
    expect([...rope.radians]).toEqual([1, 1 / 2, 1 / 8, 1 / 32]);
    expect(rope.magnitude).toBeCloseTo(1.5, 6);
  });

  test.each<[string, Settings, object]>([
    ["rope.dimension_count 3 is odd", { "rope.dimension_count": 3 }, {}],
    ["rope.dimension_count 10 does not fit heads of 8", {}, { rotary: 10 }],
    ["3 rope factors do not fit 8 rotated values", {}, { divisors: [1, 1, 1] }],
    ['rope.scaling.type is "spiral"', { "rope.scaling.type": "spiral" }, {}],
  ])("is refused: %s", (message, settings, options) => {
    expect(() => readRope(readerOf(settings), { ...halves, ...options })).toThrow(message);
  });
});

describe("a file that lies", () => {
  function describeWith(name: string, settings: Settings) {
    const model = (families[name]?.() ?? new TinyModel(name, 1)).set(settings);
    return describeModel(openGgufBytes("tiny.gguf", model.forge()));
  }

  test.each<[string, string, Settings]>([
    ["gemma4 small", "do not fit its cache", { "attention.shared_kv_layers": 7 }],
    ["gemma4 small", "must be 0 to 8", { "attention.shared_kv_layers": 9 }],
    ["gemma4 large", "do not fit its cache", { "attention.head_count_kv": [3, 3, 3, 3, 3] }],
    ["gemma4 large", "holds 0 and must be", { "attention.head_count": 0 }],
    ["lfm2", "cannot share", { "attention.head_count_kv": [0, 1, 0, 0, 2] }],
    ["lfm2", "must be 1 to 8", { "shortconv.l_cache": 9 }],
    ["lfm2moe", "expert_gating_func 7", { expert_gating_func: 7 }],
    ["qwen2", "cannot share 3 key/value heads evenly", { "attention.head_count_kv": 3 }],
    ["qwen3", "heads of width 128 (values 64)", { "attention.value_length": 64 }],
    ["granite", "granite.logit_scale is 0", { logit_scale: { float: 0 } }],
    ["qwen3moe", "qwen3moe.expert_count is missing or 0", { expert_count: 0 }],
    ["gpt-oss", "expert_used_count is 9", { expert_used_count: 9 }],
  ])("about %s is refused: %s", (name, message, settings) => {
    expect(() => describeWith(name, settings)).toThrow(message);
  });

  test("about its width names the tensors that do not fit", () => {
    const model = describeWith("gemma2", { embedding_length: 128 });
    expect(() => model.weights.declared()).toThrow("tensor token_embd.weight is [64, 320]");
  });

  test("is believed where nothing is wrong", () => {
    for (const name of Object.keys(families)) {
      expect(describeWith(name, {}).weights.declared().length).toBeGreaterThan(0);
    }
  });
});
