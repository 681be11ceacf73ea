/** However a prompt is cut into steps, the logits are the same; a cache leaves nothing behind. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Engine } from "../../src/engine/engine.ts";
import { UserError } from "../../src/errors.ts";
import { noGpu } from "../helpers/gpu.ts";
import { referenceLogits } from "../helpers/llama-reference.ts";
import { deviation, feed, loadBytes } from "../helpers/loaded.ts";
import { tinyLlama } from "../helpers/tiny-llama.ts";

// A software driver compiles kernels slowly the first time.
setDefaultTimeout(120_000);

const tiny = tinyLlama({ contextLength: 160 });
const tokens = Array.from({ length: 140 }, (_, i) => (i * i + 3 * i) % 40);
const pieceLengths = [1, 7, 64, 140];

describe.skipIf(noGpu !== undefined).each([
  ["rounding aside", { deterministic: false }],
  ["to the bit, if it is to be deterministic", { deterministic: true }],
])("%s,", (_, options) => {
  let engine: Engine;
  let whole: Float32Array[];
  beforeAll(async () => {
    engine = await loadBytes(tiny.bytes, options);
    whole = feed(engine, tokens);
  });
  afterAll(() => engine.close());

  test.each(pieceLengths)("pieces of %d give the logits of the whole", (pieceLength) => {
    const pieces = feed(engine, tokens, pieceLength);
    expect(deviation(pieces, whole)).toBeLessThan(1e-3);
    if (options.deterministic) expect(pieces).toEqual(whole);
  });

  test("the last logits alone are those behind the last of all", () => {
    for (const count of [1, 2, 3, 8, 9, 100]) {
      const sequence = engine.createSequence();
      const last: Float32Array[] = [engine.append(sequence, tokens.slice(0, count)).slice()];
      engine.release(sequence);
      expect(deviation(last, whole.slice(count - 1, count))).toBeLessThan(1e-3);
      if (options.deterministic) expect(last).toEqual(whole.slice(count - 1, count));
    }
  });
});

describe.skipIf(noGpu !== undefined)("the cache", () => {
  let engine: Engine;
  let expected: readonly number[][];
  beforeAll(async () => {
    engine = await loadBytes(tiny.bytes);
    expected = referenceLogits(tiny, tokens.slice(0, 70)).map((logits) => [...logits]);
  });
  afterAll(() => engine.close());

  // A block holds 32 positions.
  test.each([31, 32, 33, 63, 64, 65])("is right on both sides of position %d", (cut) => {
    const sequence = engine.createSequence();
    engine.append(sequence, tokens.slice(0, cut));
    const next = engine.append(sequence, tokens.slice(cut, cut + 1)).slice();
    const rest: Float32Array[] = [];
    engine.appendAll(sequence, tokens.slice(cut + 1, cut + 4), (_, logits) =>
      rest.push(logits.slice()),
    );
    engine.release(sequence);
    expect(deviation([next, ...rest], expected.slice(cut, cut + 4))).toBeLessThan(0.01);
  });

  test("shows nothing of the sequence before", () => {
    const first = feed(engine, tokens.slice(0, 70));
    feed(engine, Array(150).fill(39));
    expect(feed(engine, tokens.slice(0, 70))).toEqual(first);
  });

  test("is given back on release, also if blocks are then in another order", () => {
    const first = feed(engine, tokens.slice(0, 70));
    const [a, b] = [engine.createSequence(), engine.createSequence()];
    engine.append(a, tokens.slice(0, 40));
    engine.release(a);
    engine.append(b, tokens.slice(0, 33));
    engine.release(b);
    expect([a.length, engine.stats.freeBlockCount]).toEqual([0, 5]);
    expect(feed(engine, tokens.slice(0, 70))).toEqual(first);
  });

  test("ends with the context, and says so", () => {
    const sequence = engine.createSequence();
    engine.append(sequence, Array(160).fill(1));
    const refusal = new UserError("usage", "161 tokens do not fit the context of 160");
    expect(() => engine.append(sequence, [1])).toThrow(refusal);
    expect(sequence.length).toBe(160);
    engine.release(sequence);
    expect(() => engine.append(sequence, Array(161).fill(1))).toThrow(refusal);
    engine.release(sequence);
  });
});

describe.skipIf(noGpu !== undefined)("a step", () => {
  test("tells what it cost: one submission, whatever the rows", async () => {
    const engine = await loadBytes(tiny.bytes, { profile: true });
    const sequence = engine.createSequence();
    expect(engine.lastStep).toBeUndefined();
    engine.append(sequence, [1, 2, 3]);
    const { rows, submits, dispatches, barriers } = engine.lastStep ?? {};
    expect([rows, submits]).toEqual([3, 1]);
    // A norm, three products, rope, attention, a product; norm, two products, swiglu, a product.
    expect(dispatches).toBeLessThanOrEqual(1 + 2 * 12 + 2);
    expect(barriers).toBeGreaterThan(0);
    expect(engine.profile().reduce((sum, { count }) => sum + count, 0)).toBe(dispatches ?? 0);
    engine.close();
  });
});
