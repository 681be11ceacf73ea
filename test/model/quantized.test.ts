/**
 * Quantized models against their twins, whose floats are what the blocks hold: matrices that are
 * cut from fused ones, of every type, and experts.
 */
import { describe, expect, test } from "bun:test";
import { dtypes } from "../../src/tensor/dtype.ts";
import { noGpu } from "../helpers/gpu.ts";
import { deviation, feed, loadBytes } from "../helpers/loaded.ts";
import type { TinyModel } from "../helpers/tiny-model.ts";
import { familyTokens } from "./families.ts";
import { fused } from "./families/dense.ts";
import { gptOss } from "./families/mixtures.ts";

/** Both are computed with floats; what differs is the order of sums. */
const bound = 1e-3;
const timeoutMs = 120_000;

async function difference(quantized: TinyModel, twin: TinyModel): Promise<number> {
  const tokens = familyTokens(twin).slice(0, 12);
  const logits: Float32Array[][] = [];
  for (const model of [quantized, twin]) {
    const engine = await loadBytes(model.forge(), { contextTokens: 256 });
    logits.push(feed(engine, tokens));
    engine.close();
  }
  return deviation(logits[0] ?? [], logits[1] ?? []);
}

describe.skipIf(noGpu !== undefined)("a model with fused products", () => {
  const sizes = { layers: 1, width: 256, heads: 4, kvHeads: 1, headWidth: 64 };

  test.each(dtypes)(
    "of %s is what its twin is",
    async (dtype) => {
      const [quantized, twin] = [fused(sizes, dtype, false), fused(sizes, dtype, true)];
      expect(await difference(quantized, twin)).toBeLessThan(bound);
    },
    timeoutMs,
  );
});

describe.skipIf(noGpu !== undefined)("gpt-oss", () => {
  test(
    "with experts of MXFP4 is what its twin is",
    async () => {
      expect(await difference(gptOss("MXFP4"), gptOss("MXFP4", true))).toBeLessThan(bound);
    },
    timeoutMs,
  );
});
