/** Logits of models in memory, and how far apart two sets of logits are. */
import { Engine } from "../../src/engine/engine.ts";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { describeModel } from "../../src/model/architectures.ts";
import type { Gpu } from "../../src/vulkan/gpu.ts";

/** Loads a model, and frees it behind `use`. */
export async function withEngine<T>(
  gpu: Gpu,
  name: string,
  bytes: Uint8Array,
  use: (engine: Engine) => T,
  contextTokens = 256,
): Promise<T> {
  using file = openGgufBytes(name, bytes);
  const engine = await Engine.load(gpu, describeModel(file), { contextTokens });
  try {
    return use(engine);
  } finally {
    engine.close();
  }
}

/** Standard deviation. */
export function deviationOf(values: ArrayLike<number>): number {
  const list = Array.from(values);
  const mean = list.reduce((sum, value) => sum + value, 0) / list.length;
  return Math.sqrt(list.reduce((sum, value) => sum + (value - mean) ** 2, 0) / list.length);
}

/** The largest difference over the standard deviation of what is expected. */
export function largestDifference(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  deviation = deviationOf(expected),
): number {
  if (actual.length !== expected.length) return Number.POSITIVE_INFINITY;
  const differences = Array.from(expected, (want, i) => Math.abs((actual[i] ?? Number.NaN) - want));
  const worst = Math.max(...differences);
  return Number.isNaN(worst) ? Number.POSITIVE_INFINITY : worst / deviation;
}
