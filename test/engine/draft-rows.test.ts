/** Steps with guesses, in numbers: what is computed, what is taken back, and what is copied. */
import { describe, expect, test } from "bun:test";
import { Scheduler, type SchedulerLimits } from "../../src/engine/scheduler.ts";

const limits: SchedulerLimits = {
  blockCount: 32,
  sequenceCapacity: 4,
  checkpointCapacity: undefined,
  contextTokens: 512,
  outputCapacity: 16,
  pipelined: false,
};
const hybrid = { checkpointCapacity: 0, spareCapacity: 1 };
const prompt = Array.from({ length: 10 }, (_unused, i) => 100 + i);

class Bench {
  readonly scheduler: Scheduler;
  readonly #maxTokens: number;

  constructor(given: Partial<SchedulerLimits> = {}, texts = 1, maxTokens = 100) {
    this.scheduler = new Scheduler({ ...limits, ...given });
    this.#maxTokens = maxTokens;
    for (let i = 0; i < texts; i++) this.submit(prompt.map((token) => token + 100 * i));
    this.step();
  }

  submit(tokens: readonly number[]): void {
    this.scheduler.submit({ prompt: tokens, maxTokens: this.#maxTokens });
  }

  /**
   * Positions and rows of each text, what they are fed, and copies of state. Of the guesses of each
   * text `right` are right, and token 1 is made behind them.
   */
  step({ drafts = [] as readonly number[], right = 0 } = {}): string {
    const { scheduler } = this;
    for (let id = 0; id < 8; id++) scheduler.propose(id, drafts);
    const plan = scheduler.plan(64);
    if (plan === undefined) return "nothing";
    const runs = plan.runs.map(({ id, position, firstRow, rowCount }) => {
      const tokens = plan.rows.slice(firstRow, firstRow + rowCount).map(({ token }) => token);
      return `${id}: ${position}+${rowCount}${rowCount < 10 ? ` (${tokens.join(" ")})` : ""}`;
    });
    const states = plan.copies.states.map(({ from, to }) => `state ${from} to ${to}`);
    const outcomes = plan.runs.map((run) => {
      const tokens = [...run.drafts.slice(0, right), 1];
      return { tokens, isEnd: false };
    });
    const progress = scheduler.complete(plan, outcomes);
    const ends = progress.flatMap(({ id, finish }) => (finish === undefined ? [] : [`${id} ends`]));
    scheduler.check();
    return [...states, ...runs, ...ends].join(", ");
  }
}

describe("guesses", () => {
  test("are rows behind the last token, and those that were right are kept", () => {
    const bench = new Bench();
    expect(bench.step({ drafts: [7, 8, 9], right: 0 })).toBe("0: 10+4 (1 7 8 9)");
    expect(bench.step({ drafts: [7, 8, 9], right: 2 })).toBe("0: 11+4 (1 7 8 9)");
    expect(bench.step({ drafts: [7], right: 1 })).toBe("0: 14+2 (1 7)");
    expect(bench.step()).toBe("0: 16+1 (1)");
    expect(bench.scheduler.stats.totals).toMatchObject({ drafted: 7, accepted: 3 });
  });

  test("of a hybrid are tried on a copy of its state, and what was right is computed again", () => {
    const bench = new Bench(hybrid);
    expect(bench.step({ drafts: [7, 8, 9], right: 2 })).toBe("state 0 to 4, 0: 10+4 (1 7 8 9)");
    expect(bench.step()).toBe("state 4 to 0, 0: 10+4 (1 7 8 1)");
    expect(bench.step({ drafts: [7, 8], right: 2 })).toBe("state 0 to 4, 0: 14+3 (1 7 8)");
    // All of them were right: its state is what it should be.
    expect(bench.step()).toBe("0: 17+1 (1)");
  });

  test("of a hybrid stand also behind what is computed again, as long as there is room", () => {
    const bench = new Bench(hybrid);
    expect(bench.step({ drafts: [7, 8], right: 1 })).toBe("state 0 to 4, 0: 10+3 (1 7 8)");
    const again = bench.step({ drafts: [7, 8], right: 1 });
    expect(again).toBe("state 4 to 0, 0: 10+5 (1 7 1 7 8)");
    expect(bench.step({ drafts: [7, 8] })).toBe("state 4 to 0, 0: 10+7 (1 7 1 7 1 7 8)");
    expect(bench.step({ drafts: [7, 8] })).toBe("state 4 to 0, 0: 10+8 (1 7 1 7 1 1 7 8)");
    expect(bench.step({ drafts: [7, 8] })).toBe("state 4 to 0, 0: 10+8 (1 7 1 7 1 1 1 7)");
    expect(bench.step({ drafts: [7, 8] })).toBe("state 4 to 0, 0: 10+8 (1 7 1 7 1 1 1 1)");
    expect(bench.step({ drafts: [7, 8] })).toBe("state 0 to 4, 0: 18+3 (1 7 8)");
  });

  test("of hybrids are for as many texts as there are spare states", () => {
    const bench = new Bench(hybrid, 2);
    expect(bench.step({ drafts: [7] })).toBe("state 0 to 4, 0: 10+2 (1 7), 1: 10+1 (1)");
  });

  test("have eight rows together, and none beside a prompt", () => {
    const bench = new Bench({}, 3);
    const drafts = [7, 8, 9];
    const step = "0: 10+4 (1 7 8 9), 1: 10+3 (1 7 8), 2: 10+1 (1)";
    expect(bench.step({ drafts })).toBe(step);
    bench.submit(prompt.map((token) => token + 500));
    expect(bench.step({ drafts })).toBe("0: 11+1 (1), 1: 11+1 (1), 2: 11+1 (1), 3: 0+10");
  });

  test("never go beyond the end of a text, of the context or of a checkpoint", () => {
    const drafts = [7, 8, 9];
    const short = new Bench({}, 1, 4);
    expect(short.step({ drafts, right: 2 })).toBe("0: 10+3 (1 7 8), 0 ends");
    const narrow = new Bench({ contextTokens: 12 });
    expect(narrow.step({ drafts, right: 1 })).toBe("0: 10+2 (1 7), 0 ends");
    const checked = new Bench({ checkpointCapacity: 4, spareCapacity: 1, checkpointInterval: 32 });
    for (let i = 0; i < 18; i++) checked.step();
    expect(checked.step({ drafts, right: 2 })).toBe("state 0 to 8, 0: 28+3 (1 7 8)");
    expect(checked.step({ drafts })).toBe("0: 31+1 (1)");
    expect(checked.step({ drafts })).toBe("state 0 to 4, state 0 to 8, 0: 32+4 (1 7 8 9)");
  });

  test("are given up with their text", () => {
    const { scheduler } = new Bench(hybrid);
    scheduler.propose(0, [7, 8]);
    const plan = scheduler.plan(64);
    scheduler.cancel(0);
    if (plan === undefined) throw new Error("no plan");
    expect(scheduler.complete(plan, [{ tokens: [7, 1], isEnd: false }])).toEqual([]);
    scheduler.check();
    scheduler.clearPrefixes();
    expect(scheduler.stats.freeBlockCount).toBe(32);
  });
});
