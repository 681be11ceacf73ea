/**
 * Every architecture on a tiny model: the logits of llama.cpp on the processor, kept as literals
 * (`oracle.ts` makes them and compares all), and the same logits whatever pieces tokens come in.
 */
import { describe, expect, test } from "bun:test";
import { architectureNames } from "../../src/model/architectures.ts";
import { noGpu } from "../helpers/gpu.ts";
import { deviation, feed, loadBytes } from "../helpers/loaded.ts";
import { families, familyTokens } from "./families.ts";
import { digestOf, goldenPositions, goldenTokens, readGoldens } from "./golden.ts";
import { largestDifference } from "./logits.ts";

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
    "has the golden logits, fed in whatever pieces",
    async () => {
      const engine = await loadBytes(bytes, { contextTokens: 256 });
      const all = feed(engine, tokens);
      const differences = goldenPositions.map((position, i) =>
        largestDifference(
          goldenTokens.map((token) => all[position]?.[token] ?? Number.NaN),
          golden.logits[i] ?? [],
          golden.deviations[i],
        ),
      );
      expect(Math.max(...differences)).toBeLessThan(goldenBound);
      for (const pieceLength of [1, 7]) {
        expect(deviation(feed(engine, tokens, pieceLength), all)).toBeLessThan(piecesBound);
      }
      engine.close();
    },
    timeoutMs,
  );
});
