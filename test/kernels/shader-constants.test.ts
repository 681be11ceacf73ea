/** Numbers that stand both in a shader and in TypeScript are the same. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { attentionPartBytes } from "../../src/kernels/attention.ts";
import { blockTokens } from "../../src/kernels/step.ts";

const root = join(import.meta.dir, "../..");

/** The value of `const uint NAME = value;` in a shader. */
function inShader(file: string, name: string): number | undefined {
  const text = readFileSync(join(root, "shaders", file), "utf8");
  const value = new RegExp(`const uint ${name} = (\\d+);`).exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

/** The value of `name = value` or `name: value` in a source. */
function inSource(file: string, name: string): number | undefined {
  const text = readFileSync(join(root, "src/kernels", file), "utf8");
  const value = new RegExp(`\\b${name}(?: =|:) (\\d+)`).exec(text)?.[1];
  return value === undefined ? undefined : Number(value);
}

test("a block of the cache has as many positions", () => {
  expect(inShader("include/cache.glsl", "BLOCK_TOKENS")).toBe(blockTokens);
});

test("an unfinished attention has as many words before it", () => {
  const words = attentionPartBytes(1, 1, 0, 2) / 2 / 4;
  expect(inShader("include/attention_parts.glsl", "PART_HEADER")).toBe(words);
});

describe("a product", () => {
  test.each(["HAS_BIAS", "ACCUMULATE", "OUTPUTS"])("knows the flag %s", (name) => {
    const bit = inShader("include/product_flags.glsl", name);
    expect(bit).toBeGreaterThan(0);
    expect(bit).toBe(inSource("matmul.ts", name));
  });

  test.each([
    ["TILE_ROWS", "tileRows"],
    ["TILE_COLUMNS", "tileColumns"],
  ])("has tiles of the same size: %s", (inGlsl, inTypeScript) => {
    const size = inShader("matmul.comp", inGlsl);
    expect(size).toBeGreaterThan(0);
    expect(size).toBe(inSource("matmul.ts", inTypeScript));
  });
});
