/** Models of tests on the test device: loaded, fed, compared. */
import { Engine, type EngineOptions } from "../../src/engine/engine.ts";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { describeModel } from "../../src/model/architectures.ts";
import { testGpu } from "./gpu.ts";

/** An engine with the model of a file in memory. Close it. */
export async function loadBytes(bytes: Uint8Array, options: EngineOptions = {}): Promise<Engine> {
  return Engine.load(testGpu(), describeModel(openGgufBytes("tiny.gguf", bytes)), options);
}

/** Logits behind each token of a fresh sequence that is fed in pieces. */
export function feed(
  engine: Engine,
  tokens: readonly number[],
  pieceLength = tokens.length,
): Float32Array[] {
  const sequence = engine.createSequence();
  const result: Float32Array[] = [];
  for (let start = 0; start < tokens.length; start += pieceLength) {
    engine.appendAll(sequence, tokens.slice(start, start + pieceLength), (_, logits) =>
      result.push(logits.slice()),
    );
  }
  engine.release(sequence);
  return result;
}

/**
 * The largest difference at any position, in standard deviations of the logits expected there.
 * Infinite if there is something that is no number, or too few.
 */
export function deviation(
  actual: readonly ArrayLike<number>[],
  expected: readonly ArrayLike<number>[],
): number {
  if (actual.length !== expected.length) return Number.POSITIVE_INFINITY;
  const differences = expected.map((want, position) => {
    const values = Array.from(want);
    const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
    const spread = Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length);
    const got = actual[position];
    if (got?.length !== values.length) return Number.POSITIVE_INFINITY;
    return Math.max(...values.map((x, i) => Math.abs(x - (got[i] ?? Number.NaN)))) / spread;
  });
  const worst = Math.max(...differences);
  return Number.isNaN(worst) ? Number.POSITIVE_INFINITY : worst;
}
