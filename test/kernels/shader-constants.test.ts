/** Numbers that stand both in a shader and in TypeScript are the same. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { attentionPartBytes } from "../../src/kernels/attention.ts";
import { gateNumber } from "../../src/kernels/gate.ts";
import { rowLanes } from "../../src/kernels/linear.ts";
import { kvConstants, kvHeadBytes } from "../../src/kernels/kv-type.ts";
import { blockTokens } from "../../src/kernels/step.ts";
import { noiseLevel } from "../../src/kernels/verify/kv-codec.ts";
import { dtypes, type DType } from "../../src/tensor/dtype.ts";

const root = join(import.meta.dir, "../..");

function textOf(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The value of `const uint NAME = value;` in a shader. */
function inShader(file: string, name: string): number | undefined {
  const value = new RegExp(`const uint ${name} = (\\d+);`).exec(textOf(`shaders/${file}`))?.[1];
  return value === undefined ? undefined : Number(value);
}

/** The value of `name = value` or `name: value` in a source. */
function inSource(file: string, name: string): number | undefined {
  const value = new RegExp(`\\b${name}"?(?: =|:) (\\d+)`).exec(textOf(`src/kernels/${file}`))?.[1];
  return value === undefined ? undefined : Number(value);
}

test("a block of the cache has as many positions", () => {
  expect(inShader("include/cache.glsl", "BLOCK_TOKENS")).toBe(blockTokens);
});

test("an unfinished attention has as many words before its sum", () => {
  const quads = /const uint PART = VALUE_QUADS \+ (\d+);/.exec(
    textOf("shaders/attention.comp"),
  )?.[1];
  const bytes = (headWidth: number) => attentionPartBytes([{ heads: 1, kvHeads: 1, headWidth }]);
  // Parts of 256 workgroups, and a counter for each of 512 rows.
  expect((bytes(64) - 512 * 4) / 256).toBe((Number(quads) * 4 + 64) * 4);
});

test.each([
  ["CODES", "int8"],
  ["TILES", "tile"],
])("the result of an attention has the same number: %s", (inGlsl, inTypeScript) => {
  const number = inShader("attention.comp", inGlsl);
  expect(number).toBeDefined();
  expect(number).toBe(inSource("attention.ts", inTypeScript));
});

describe("a cache", () => {
  test.each([
    ["F16", "f16"],
    ["Q8_0", "q8_0"],
    ["TQ4", "tq4"],
    ["TQ3", "tq3"],
  ] as const)("has the same number for %s", (inGlsl, type) => {
    const number = inShader("include/cache.glsl", inGlsl) ?? 0;
    expect(kvConstants({ key: type, value: "tq4" })).toEqual([number, 4]);
    // Words of 32 values, without their scale.
    expect(Math.floor((kvHeadBytes(type, 32) - 1) / 4) + (type === "f16" ? 1 : 0)).toBe(number);
  });

  test("has the same levels for its codes", () => {
    const text = textOf("shaders/include/cache_codes.glsl");
    const [, a, b, c, d] =
      /TQ4 \? vec2\(([\d.]+), ([\d.]+)\) : vec2\(([\d.]+), ([\d.]+)\)/.exec(text) ?? [];
    const cubic = (t: number, x = "", y = "") => t * (Number(x) + Number(y) * t * t);
    expect(cubic(7.5, a, b)).toBe(noiseLevel("tq4", 15));
    expect(cubic(0.5, a, b)).toBe(noiseLevel("tq4", 8));
    expect(cubic(3.5, c, d)).toBe(noiseLevel("tq3", 7));
    expect(cubic(0.5, c, d)).toBe(noiseLevel("tq3", 4));
  });
});

describe("a product", () => {
  test.each(["HAS_BIAS", "ACCUMULATE", "OUTPUTS"])("knows the flag %s", (name) => {
    const bit = inShader("include/product_flags.glsl", name);
    expect(bit).toBeGreaterThan(0);
    expect(bit).toBe(inSource("product-flags.ts", name));
  });

  /** Of a type's own file, or of one that it includes. */
  function unitValues(file: string): number {
    const text = textOf(`shaders/include/quant/${file}`);
    const value = /#define UNIT_VALUES (\d+)/.exec(text)?.[1];
    if (value !== undefined) return Number(value);
    const included = [...text.matchAll(/#include "(.*)"/g)].map(([, name = ""]) => name);
    return Math.max(0, ...included.map(unitValues));
  }

  test.each(dtypes)("takes as many %s values at once", (dtype: DType) => {
    const columns = 8 * unitValues(`${dtype.toLowerCase()}.glsl`);
    // A row of eight units keeps eight invocations busy.
    expect(rowLanes({ name: "w", dtype, rows: 1, columns, planes: [] }, 64)).toBe(8);
  });
});

describe("a mixture of experts", () => {
  test.each([
    ["SOFTMAX", "softmax"],
    ["SIGMOID", "sigmoid"],
    ["SOFTMAX_OF_CHOSEN", "softmax of the chosen"],
  ])("scores by the same number: %s", (inGlsl, inTypeScript) => {
    const number = inShader("include/choose.glsl", inGlsl);
    expect(number).toBeDefined();
    expect(number).toBe(inSource("expert-choice.ts", inTypeScript));
  });
});

test.each([
  ["SILU", "silu"],
  ["GELU", "gelu"],
  ["CLAMPED", "clamped"],
] as const)("an activation has the same number: %s", (inGlsl, inTypeScript) => {
  expect(inShader("include/gate.glsl", inGlsl)).toBe(gateNumber(inTypeScript));
});

test("an invocation of the sampler looks after as many logits", () => {
  const share = inShader("sample.comp", "SHARE");
  expect(share).toBeGreaterThan(0);
  expect(share).toBe(inSource("sample.ts", "share"));
});
