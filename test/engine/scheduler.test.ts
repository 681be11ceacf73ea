/** What each step computes, in numbers: "text: first position + rows". */
import { describe, expect, test } from "bun:test";
import { Scheduler, type SchedulerLimits } from "../../src/engine/scheduler.ts";
import type { StepPlan } from "../../src/engine/step-plan.ts";
import { latestToken } from "../../src/kernels/step.ts";
import type { TokenRequest } from "../../src/engine/token-stream.ts";

const limits: SchedulerLimits = {
  blockCount: 32,
  sequenceCapacity: 4,
  checkpointCapacity: undefined,
  contextTokens: 512,
  outputCapacity: 4,
  pipelined: false,
};

/** A prompt that begins like no other. */
const prompt = (length: number, first = 0) =>
  Array.from({ length }, (_unused, i) => first * 10_000 + i);

class Bench {
  readonly scheduler: Scheduler;
  readonly #flights: StepPlan[] = [];
  readonly finished: string[] = [];

  constructor(given: Partial<SchedulerLimits> = {}) {
    this.scheduler = new Scheduler({ ...limits, ...given });
  }

  submit(request: Partial<TokenRequest> & Pick<TokenRequest, "prompt">): number {
    return this.scheduler.submit({ maxTokens: 100, ...request });
  }

  plan(rowBudget = 64): string {
    const plan = this.scheduler.plan(rowBudget);
    if (plan === undefined) return "nothing";
    this.#flights.push(plan);
    return plan.runs
      .map(({ id, position, rowCount, hasOutput }) => {
        const output = hasOutput ? " →" : "";
        return `${id}: ${position}+${rowCount}${output}`;
      })
      .join(", ");
  }

  get lastPlan(): StepPlan | undefined {
    return this.#flights.at(-1);
  }

  /** Ends the earliest step: every output gives token 1, the last of a text if it is named. */
  complete(...ending: readonly number[]): void {
    const plan = this.#flights.shift();
    if (plan === undefined) throw new Error("no step is under way");
    const outputs = plan.runs.filter(({ hasOutput }) => hasOutput);
    const outcomes = outputs.map(({ id }) => ({ tokens: [1], isEnd: ending.includes(id) }));
    for (const { id, finish } of this.scheduler.complete(plan, outcomes)) {
      if (finish !== undefined) this.finished.push(`${id}: ${finish}`);
    }
  }

  step(rowBudget?: number): string {
    const text = this.plan(rowBudget);
    if (text !== "nothing") this.complete();
    return text;
  }
}

describe("a step", () => {
  test("brings a prompt in chunks, then a row a token", () => {
    const bench = new Bench();
    bench.submit({ prompt: prompt(100), maxTokens: 3 });
    expect([1, 2, 3, 4, 5].map(() => bench.step())).toEqual([
      "0: 0+64",
      "0: 64+36 →",
      "0: 100+1 →",
      "0: 101+1 →",
      "nothing",
    ]);
    expect(bench.finished).toEqual(["0: length"]);
  });

  test("mixes decoding and prefill, decoding first", () => {
    const bench = new Bench();
    bench.submit({ prompt: prompt(10, 1) });
    bench.submit({ prompt: prompt(20, 2) });
    expect(bench.step()).toBe("0: 0+10 →, 1: 0+20 →");
    bench.submit({ prompt: prompt(100, 3) });
    expect(bench.step()).toBe("0: 10+1 →, 1: 20+1 →, 2: 0+62");
    expect(bench.step()).toBe("0: 11+1 →, 1: 21+1 →, 2: 62+38 →");
  });

  test("keeps to its budget of rows", () => {
    const bench = new Bench();
    for (let i = 0; i < 4; i++) bench.submit({ prompt: prompt(40, i) });
    // In turns of a block, the shortest rest first.
    expect(bench.step(64)).toBe("0: 0+40 →, 1: 0+24");
    expect(bench.step(8)).toBe("0: 40+1 →, 1: 24+7");
  });

  test("waits for the ids of the one before, if only one may be under way", () => {
    const bench = new Bench();
    bench.submit({ prompt: prompt(100) });
    expect([bench.plan(), bench.plan()]).toEqual(["0: 0+64", "nothing"]);
  });

  test("is planned ahead of the ids of the one before", () => {
    const bench = new Bench({ pipelined: true });
    bench.submit({ prompt: prompt(10), maxTokens: 3 });
    expect([bench.plan(), bench.plan(), bench.plan()]).toEqual([
      "0: 0+10 →",
      "0: 10+1 →",
      "nothing",
    ]);
    expect(bench.lastPlan?.rows).toEqual([{ token: latestToken, position: 10, sequence: 0 }]);
    bench.complete(0);
    expect(bench.finished).toEqual(["0: stop"]);
    // The row that was planned too much.
    bench.complete();
    expect(bench.scheduler.stats).toMatchObject({ runningCount: 0, totals: { discarded: 1 } });
  });
});

describe("steps that are under way together and wait for ids", () => {
  const several = { pipelined: false, stepsInFlight: 2 };

  test("have chunks of a prompt, but no row behind a token that is not known", () => {
    const bench = new Bench(several);
    bench.submit({ prompt: prompt(100) });
    const plans = [bench.plan(), bench.plan(), bench.plan()];
    expect(plans).toEqual(["0: 0+64", "0: 64+36 →", "nothing"]);
    bench.complete();
    expect(bench.plan()).toBe("nothing");
    bench.complete();
    expect([bench.plan(), bench.plan()]).toEqual(["0: 100+1 →", "nothing"]);
  });

  test("share the texts that decode, and each text keeps its turn", () => {
    const bench = new Bench(several);
    for (let i = 0; i < 3; i++) bench.submit({ prompt: prompt(10, i) });
    expect(bench.step()).toBe("0: 0+10 →, 1: 0+10 →, 2: 0+10 →");
    expect([bench.plan(), bench.plan(), bench.plan()]).toEqual([
      "0: 10+1 →, 1: 10+1 →",
      "2: 10+1 →",
      "nothing",
    ]);
    bench.complete();
    expect([bench.plan(), bench.plan()]).toEqual(["0: 11+1 →, 1: 11+1 →", "nothing"]);
    bench.complete();
    expect([bench.plan(), bench.plan()]).toEqual(["2: 11+1 →", "nothing"]);
  });
});

describe("a text", () => {
  test("ends at the context", () => {
    const bench = new Bench({ contextTokens: 64 });
    bench.submit({ prompt: prompt(64) });
    expect([bench.step(), bench.step()]).toEqual(["0: 0+64 →", "nothing"]);
    expect(bench.finished).toEqual(["0: length"]);
  });

  test("that is given up has no rows in the next step, in whatever phase it was", () => {
    const bench = new Bench({ sequenceCapacity: 2 });
    const decoding = bench.submit({ prompt: prompt(10, 1) });
    const prefilling = bench.submit({ prompt: prompt(500, 2) });
    const waiting = bench.submit({ prompt: prompt(10, 3) });
    expect(bench.step()).toBe("0: 0+10 →, 1: 0+54");
    expect(bench.plan()).toBe("0: 10+1 →, 1: 54+63");
    for (const id of [decoding, prefilling, waiting]) {
      expect(bench.scheduler.cancel(id)).toBe(true);
      expect(bench.scheduler.cancel(id)).toBe(false);
    }
    bench.complete();
    expect(bench.step()).toBe("nothing");
    expect(bench.finished).toEqual([]);
    bench.scheduler.check();
    bench.scheduler.clearPrefixes();
    expect(bench.scheduler.stats.freeBlockCount).toBe(32);
  });
});

describe("a full cache", () => {
  test("keeps texts out until there is room for all of their prompt", () => {
    const bench = new Bench({ blockCount: 16 });
    bench.submit({ prompt: prompt(300, 1), maxTokens: 1 });
    bench.submit({ prompt: prompt(300, 2), maxTokens: 1 });
    expect(bench.step(512)).toBe("0: 0+300 →");
    expect(bench.step(512)).toBe("1: 0+300 →");
  });

  test("takes everything from the youngest text, which computes it again later", () => {
    const bench = new Bench({ blockCount: 4, contextTokens: 128 });
    bench.submit({ prompt: prompt(31, 1), maxTokens: 60 });
    bench.submit({ prompt: prompt(31, 2), maxTokens: 60 });
    for (let i = 0; i < 34; i++) expect(bench.step()).toContain(", 1: ");
    // Position 64 of both wants a fifth and a sixth block.
    expect([bench.step(), bench.scheduler.stats.totals.preemptions]).toEqual(["0: 64+1 →", 1]);
    while (bench.finished.length === 0) expect(bench.step()).toStartWith("0: ");
    // What it had computed is in the cache still, but for what was needed.
    expect(bench.step()).toBe("1: 32+33 →");
    while (bench.finished.length < 2) bench.step();
    expect(bench.finished).toEqual(["0: length", "1: length"]);
  });
});

describe("a known prefix", () => {
  test("is not computed again, and only its last token if it is all there is", () => {
    const bench = new Bench();
    bench.submit({ prompt: prompt(110), maxTokens: 1 });
    bench.step(512);
    bench.submit({ prompt: prompt(110), maxTokens: 1 });
    expect(bench.step(512)).toBe("1: 109+1 →");
    // Six tokens of a block are not worth a copy.
    bench.submit({ prompt: [...prompt(70), 5, 5, 5], maxTokens: 1 });
    expect(bench.step(512)).toBe("2: 64+9 →");
    expect(bench.scheduler.stats.totals.cached).toBe(109 + 64);
  });

  test("goes on in the middle of a block in a copy of it", () => {
    const bench = new Bench();
    bench.submit({ prompt: prompt(90), maxTokens: 1 });
    bench.step(512);
    bench.submit({ prompt: [...prompt(80), 5, 5, 5], maxTokens: 1 });
    expect(bench.plan(512)).toBe("1: 80+3 →");
    expect(bench.lastPlan?.copies).toEqual({ blocks: [{ from: 2, to: 3 }], states: [] });
    expect(bench.lastPlan?.tables).toEqual([{ slot: 0, from: 0, blocks: [0, 1, 3] }]);
  });

  test("that another text computes in this step is waited for", () => {
    const bench = new Bench();
    bench.submit({ prompt: [...prompt(110), 1], maxTokens: 1 });
    bench.submit({ prompt: [...prompt(110), 2], maxTokens: 1 });
    expect(bench.step(512)).toBe("0: 0+111 →");
    expect(bench.step(512)).toBe("1: 110+1 →");
  });

  test("with recurrent state ends at a checkpoint, which is one at the end of a text", () => {
    const bench = new Bench({ checkpointCapacity: 8, checkpointInterval: 512 });
    bench.submit({ prompt: prompt(300), maxTokens: 40 });
    // The prompt is cut where its checkpoint is.
    expect([bench.step(512), bench.plan(512)]).toEqual(["0: 0+288", "0: 288+12 →"]);
    expect(bench.lastPlan?.copies.states).toEqual([{ from: 0, to: 4 }]);
    bench.complete();
    while (bench.finished.length === 0) bench.step(512);
    // A second turn: all but the last token of the answer was computed.
    bench.submit({ prompt: [...prompt(300), ...Array(40).fill(1), 7, 7, 7], maxTokens: 1 });
    expect(bench.plan(512)).toBe("1: 339+4 →");
    expect(bench.lastPlan?.copies.states).toEqual([
      { from: 0, to: 5 },
      { from: 5, to: 0 },
    ]);
    bench.complete();
    // Another one parts in the prompt's last block.
    bench.submit({ prompt: [...prompt(290), 7], maxTokens: 1 });
    expect(bench.step(512)).toBe("2: 288+3 →");
  });
});

describe("clients", () => {
  test("are served alike, however much one asks for", () => {
    const bench = new Bench({ blockCount: 400, sequenceCapacity: 8, outputCapacity: 8 });
    for (let i = 0; i < 20; i++) bench.submit({ prompt: prompt(200, i), client: "greedy" });
    const modest = bench.submit({ prompt: prompt(200, 99), client: "modest", maxTokens: 1 });
    let steps = 0;
    while (!bench.finished.includes(`${modest}: length`)) {
      bench.step();
      steps++;
    }
    // Among eight texts it is let in as the second, and gets most of the rows of prefill.
    expect(steps).toBeLessThanOrEqual(8);
  });
});
