/**
 * Every architecture on a tiny model: the logits of llama.cpp on the processor, kept as literals
 * (`oracle.ts` makes them and compares all), and the same logits whatever pieces the tokens come in.
 */
import { describe, expect, test } from "bun:test";
import type { Engine } from "../../src/engine/engine.ts";
import { architectureNames } from "../../src/model/architectures.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { families, familyTokens } from "./families.ts";
import { digestOf, goldenPositions, goldenTokens, readGoldens } from "./golden.ts";
import { deviationOf, largestDifference, withEngine } from "./logits.ts";

/** Of a standard deviation: float kernels against another engine's. */
const goldenBound = 0.01;
/** The same against themselves. */
const piecesBound = 1e-3;
/** A software driver on a busy machine. */
const timeoutMs = 120_000;

const goldens = readGoldens();

/** Architectures with recurrent layers have tests of their own. */
const triedElsewhere = ["qwen35", "qwen35moe", "qwen3next"];

test("every architecture has a tiny model", () => {
  const tried = new Set([
    ...Object.keys(families).map((name) => name.split(" ")[0]),
    ...triedElsewhere,
  ]);
  expect(architectureNames.filter((name) => !tried.has(name))).toEqual([]);
});

test("every tiny model has golden logits", () => {
  expect(Object.keys(goldens)).toEqual(Object.keys(families));
});

describe.each(Object.keys(families))("%s", (name) => {
  const build = families[name];
  const golden = goldens[name];
  if (build === undefined || golden === undefined) return;
  const model = build();
  const tokens = familyTokens(model);
  const bytes = model.forge();

  test("is the file that the golden logits are of", () => {
    expect(digestOf(bytes)).toBe(golden.sha256);
  });

  test.skipIf(noGpu !== undefined)(
    "has the golden logits",
    async () => {
      const all = await withEngine(testGpu(), name, bytes, (engine) => allLogits(engine, tokens));
      const differences = goldenPositions.map((position, i) =>
        largestDifference(
          goldenTokens.map((token) => all[position]?.[token] ?? Number.NaN),
          golden.logits[i] ?? [],
          golden.deviations[i],
        ),
      );
      expect(Math.max(...differences)).toBeLessThan(goldenBound);
    },
    timeoutMs,
  );

  test.skipIf(noGpu !== undefined)(
    "does not mind in which pieces tokens come",
    async () => {
      await withEngine(testGpu(), name, bytes, (engine) => {
        const all = allLogits(engine, tokens);
        for (const size of [1, 7, tokens.length]) {
          const found = piecewise(engine, tokens, size);
          for (const [position, logits] of found) {
            const expected = all[position] ?? new Float32Array();
            const difference = largestDifference(logits, expected, deviationOf(expected));
            expect(difference).toBeLessThan(piecesBound);
          }
        }
      });
    },
    timeoutMs,
  );
});

function allLogits(engine: Engine, tokens: readonly number[]): Float32Array[] {
  const sequence = engine.createSequence();
  const found: Float32Array[] = [];
  engine.appendAll(sequence, tokens, (_index, logits) => found.push(logits.slice()));
  engine.release(sequence);
  return found;
}

/** The logits behind the last token of each piece, by position. */
function piecewise(
  engine: Engine,
  tokens: readonly number[],
  size: number,
): Map<number, Float32Array> {
  const sequence = engine.createSequence();
  const found = new Map<number, Float32Array>();
  for (let start = 0; start < tokens.length; start += size) {
    const piece = tokens.slice(start, start + size);
    found.set(start + piece.length - 1, engine.append(sequence, piece).slice());
  }
  engine.release(sequence);
  return found;
}
