/** When drafts are tried, on a device whose steps take what the test says. */
import { describe, expect, test } from "bun:test";
import { DraftAccount } from "../../src/engine/draft-account.ts";
import type { Drafter } from "../../src/engine/drafter.ts";
import { Speculation } from "../../src/engine/speculation.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

interface World {
  /** Of the tokens of a guess, in hundredths. */
  readonly right: number;
  /** Milliseconds of a step by its rows; one of a text alone takes 1. */
  readonly ms: (rows: number) => number;
  /** The first steps take so many times as long. */
  readonly slowAtFirst?: number;
  readonly texts?: number;
}

/** Makes texts of so many tokens; how long that takes in steps without drafts. */
function run({ right, ms: usual, slowAtFirst = 1, texts = 1 }: World, length: number) {
  let stepCount = 0;
  const ms = (rows: number) => usual(rows) * (stepCount < 20 ? slowAtFirst : 1);
  const random = new SeededRandom(1);
  const speculation = new Speculation(new DraftAccount(false));
  const made = Array.from({ length: texts }, () => [] as number[]);
  const drafter: Drafter = {
    guess: (_tokens, count) => ({
      tokens: Array.from({ length: count }, () => (random.below(100) < right ? 1 : 0)),
      evidence: 0,
    }),
  };
  made.forEach((_tokens, id) => speculation.open(id, drafter));
  let [milliseconds, drafted, widest, plain] = [0, 0, 0, 0];
  while (made.some((tokens) => tokens.length < length)) {
    const drafts = speculation.drafts(texts, (id) => made[id]);
    let [rows, tokens] = [0, 0];
    for (const [id, text] of made.entries()) {
      const draft = drafts.get(id) ?? [];
      const wrong = [...draft, 0].indexOf(0);
      const more = Array.from({ length: wrong + 1 }, () => 1);
      speculation.hear(id, text.length, more);
      text.push(...more);
      rows += 1 + draft.length;
      tokens += more.length;
      drafted += draft.length;
    }
    widest = Math.max(widest, rows);
    milliseconds += ms(rows);
    plain += (tokens / texts) * ms(texts);
    const isPlain = drafts.size === 0;
    speculation.observe({ texts, rows, tokens, milliseconds: ms(rows), isPlain });
    stepCount++;
  }
  return { slowdown: milliseconds / plain, drafted, widest };
}

/** A GPU that waits for memory, a larger mixture of experts, and a processor. */
const flat = (rows: number) => (rows === 1 ? 1 : 1.1 + 0.03 * rows);
const steep = (rows: number) => 1 + 0.35 * (rows - 1);
const linear = (rows: number) => rows;

describe("drafts", () => {
  test("that are right make several tokens a step", () => {
    expect(run({ right: 100, ms: flat }, 500)).toMatchObject({ widest: 8 });
    expect(run({ right: 100, ms: flat }, 500).slowdown).toBeLessThan(0.2);
    expect(run({ right: 95, ms: flat }, 500).slowdown).toBeLessThan(0.35);
    expect(run({ right: 80, ms: flat }, 500).slowdown).toBeLessThan(0.6);
  });

  test.each([0, 20, 40, 60, 80, 100])("cost next to nothing if %p%% are right", (right) => {
    for (const ms of [flat, steep, linear]) {
      const { slowdown } = run({ right, ms }, 500);
      expect(slowdown).toBeLessThan(1.03);
    }
  });

  test("that are always wrong are hardly tried, and never many at a time", () => {
    const { drafted, widest } = run({ right: 0, ms: flat }, 2000);
    expect(drafted).toBeLessThan(100);
    expect(widest).toBeLessThanOrEqual(4);
  });

  test.each([0, 20, 40])("notice when everything becomes faster; %p%% are right", (right) => {
    for (const ms of [flat, steep, linear]) {
      const { slowdown } = run({ right, ms, slowAtFirst: 5 }, 1000);
      expect(slowdown).toBeLessThan(1.03);
    }
  });

  test("are not tried where rows cost as much as steps", () => {
    expect(run({ right: 100, ms: linear }, 2000).drafted).toBeLessThan(150);
  });

  test("of several texts share the rows", () => {
    const { slowdown, widest } = run({ right: 95, ms: flat, texts: 3 }, 500);
    expect(widest).toBe(8);
    expect(slowdown).toBeLessThan(0.6);
  });

  test("are not made for many texts", () => {
    expect(run({ right: 100, ms: flat, texts: 8 }, 100).drafted).toBe(0);
  });

  test("are not made where a text has no drafter: it would have to wait", () => {
    const speculation = new Speculation({ observe() {}, knows: () => true, worthwhile: () => 7 });
    speculation.open(0, { guess: () => ({ tokens: [1, 2], evidence: 3 }) });
    expect([...speculation.drafts(1, () => [5])]).toEqual([[0, [1, 2]]]);
    expect([...speculation.drafts(2, (id) => (id === 0 ? [5] : undefined))]).toEqual([]);
    expect(speculation.isWorthWaiting(2, (id) => (id === 0 ? [5] : undefined))).toBe(false);
  });
});
