/** The loop that makes texts, on a device that is none: what readers get, and when. */
import { describe, expect, test } from "bun:test";
import type { FinishReason, GenerationRequest } from "../../src/engine/generation.ts";
import { RowBudget } from "../../src/engine/row-budget.ts";
import type { Runner } from "../../src/engine/runner.ts";
import { Scheduler } from "../../src/engine/scheduler.ts";
import { greedySampling } from "../../src/kernels/sample.ts";
import { Speculation } from "../../src/engine/speculation.ts";
import type { StepWork } from "../../src/engine/step-plan.ts";
import { TokenLoop } from "../../src/engine/token-loop.ts";
import { nextTurn } from "../../src/engine/turn.ts";

const vocabularySize = 4;
const budget = () =>
  new RowBudget({ least: 32, first: 32, most: 32, growMs: 0, shrinkMs: Number.MAX_VALUE });

/**
 * Tokens are those of a list, then 0 for ever; `steps` are rows and outputs of each step, `landed`
 * how many of them the loop has waited for.
 */
function started(run: (step: number) => void = () => {}, pipelined = false) {
  const steps: string[] = [];
  const landed = { count: 0 };
  const runner = {
    lastStep: { rows: 0, hostMs: 1, waitMs: 1, gpuMs: 1 },
    launch({ rows, outputRows }: StepWork): number {
      steps.push(`${rows.length} → ${outputRows.length}`);
      run(steps.length);
      return outputRows.length;
    },
    land() {
      landed.count++;
    },
    reset() {},
    tokensOf: (outputs: number) => new Uint32Array(outputs),
    logitsOf: (outputs: number) => new Float32Array(outputs * vocabularySize),
  };
  const scheduler = new Scheduler({
    blockCount: 16,
    sequenceCapacity: 2,
    checkpointCapacity: undefined,
    contextTokens: 128,
    outputCapacity: 2,
    pipelined,
  });
  const loop = new TokenLoop({
    scheduler,
    runner: runner as unknown as Runner,
    prefillBudget: budget(),
    mixedBudget: budget(),
    vocabularySize,
    speculation: new Speculation({ observe() {}, knows: () => true, worthwhile: () => 0 }),
    createDrafter: () => undefined,
  });
  return { loop, scheduler, steps, landed };
}

function request(list: readonly number[], more: Partial<GenerationRequest> = {}) {
  const rest = [...list];
  return {
    prompt: [1, 2, 3],
    maxTokens: 100,
    endTokens: new Set([3]),
    sampler: { prime() {}, sample: () => rest.shift() ?? 0 },
    ...more,
  };
}

async function read(text: AsyncGenerator<number, FinishReason>): Promise<string> {
  const tokens: number[] = [];
  for (;;) {
    const { done, value } = await text.next();
    if (done === true) return `${tokens.join(" ")} ${value}`.trim();
    tokens.push(value);
  }
}

describe("a reader", () => {
  test("gets the tokens and why there are no more", async () => {
    const { loop, steps } = started();
    expect(await read(loop.generate(request([1, 2, 3])))).toBe("1 2 stop");
    expect(await read(loop.generate(request([1, 2], { maxTokens: 2 })))).toBe("1 2 length");
    expect(await read(loop.generate(request([], { maxTokens: 0 })))).toBe("length");
    expect(steps).toEqual(["3 → 1", "1 → 1", "1 → 1", "3 → 1", "1 → 1"]);
  });

  test("shares steps with others that asked at the same time; a third waits", async () => {
    const { loop, steps } = started();
    const texts = [1, 2, 3].map(() => read(loop.generate(request([1, 3]))));
    expect(await Promise.all(texts)).toEqual(["1 stop", "1 stop", "1 stop"]);
    expect(steps).toEqual(["6 → 2", "2 → 2", "3 → 1", "1 → 1"]);
  });

  test("hears when its text begins and when its prompt is done", async () => {
    const { loop, steps } = started();
    const heard: string[] = [];
    const onBegin = (count: number) =>
      heard.push(`begun before step ${steps.length + 1}: ${count}`);
    const onPrefill = () => heard.push(`prefilled in step ${steps.length}`);
    const prompt = Array.from({ length: 40 }, (_unused, i) => i);
    await read(loop.generate(request([1, 3], { prompt, onBegin, onPrefill })));
    await read(loop.generate(request([3], { prompt, onBegin, onPrefill })));
    expect(heard).toEqual([
      "begun before step 1: 0",
      "prefilled in step 2",
      "begun before step 4: 32",
      "prefilled in step 4",
    ]);
  });

  test("that is slow holds its own text in lockstep, and nobody else's", async () => {
    const { loop, steps } = started();
    const slow = loop.generate(request([1, 2, 3], { lockstep: true }));
    expect((await slow.next()).value).toBe(1);
    expect(await read(loop.generate(request([1, 2, 3])))).toBe("1 2 stop");
    expect(steps).toEqual(["3 → 1", "3 → 1", "1 → 1", "1 → 1"]);
    expect(await read(slow)).toBe("2 stop");
    expect(steps).toHaveLength(6);
  });

  test("hears of no step that was under way when the loop stopped", async () => {
    const { loop, steps, landed } = started(undefined, true);
    const onDevice = { biasCount: 0, next: () => greedySampling, takeBack() {} };
    const sampler = { prime() {}, sample: () => 0, onDevice };
    const text = loop.generate(request([], { sampler }));
    expect((await text.next()).value).toBe(0);
    loop.stop();
    const { count } = landed;
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    expect(steps).toHaveLength(count + 1);
    expect(landed.count).toBe(count);
    expect(await read(text)).toBe("cancelled");
  });

  test("that leaves takes its text along", async () => {
    const { loop, scheduler } = started();
    for await (const _token of loop.generate(request([1]))) break;
    expect(scheduler.stats).toMatchObject({ waitingCount: 0, runningCount: 0 });
  });

  test("gets nothing more after its signal, not even what was made", async () => {
    const { loop, scheduler } = started();
    const controller = new AbortController();
    const text = loop.generate(request([1, 1, 1, 1], { signal: controller.signal }));
    expect((await text.next()).value).toBe(1);
    // The loop runs ahead of its reader.
    for (let turn = 0; turn < 5; turn++) await nextTurn();
    controller.abort();
    expect(await read(text)).toBe("cancelled");
    expect(scheduler.stats.runningCount).toBe(0);
  });

  test("may give up from within what it is told", async () => {
    for (const moment of ["onBegin", "onPrefill"] as const) {
      const { loop, scheduler } = started();
      const controller = new AbortController();
      const { signal } = controller;
      const other = read(loop.generate(request([1, 2, 3])));
      const more = { signal, [moment]: () => controller.abort() };
      expect(await read(loop.generate(request([1, 2, 3], more)))).toEndWith("cancelled");
      expect(await other).toBe("1 2 stop");
      expect(scheduler.stats.runningCount).toBe(0);
    }
  });
});

describe("a sampler that fails", () => {
  test("fails its own text alone", async () => {
    const { loop, scheduler } = started();
    const sampler = {
      prime() {},
      sample: () => {
        throw new Error("no token is allowed");
      },
    };
    const bad = read(loop.generate(request([], { sampler })));
    const good = read(loop.generate(request([1, 2, 3])));
    expect(bad).rejects.toThrow("no token is allowed");
    expect(await good).toBe("1 2 stop");
    expect(scheduler.stats).toMatchObject({ waitingCount: 0, runningCount: 0 });
  });
});

describe("a step that fails", () => {
  test("fails the texts that are open, and later ones are made", async () => {
    const { loop, scheduler } = started((step) => {
      if (step === 2) throw new Error("the device is lost");
    });
    const texts = [1, 2, 3].map(() => read(loop.generate(request([1, 2, 3]))));
    const outcomes = await Promise.allSettled(texts);
    expect(outcomes.map(({ status }) => status)).toEqual(Array(3).fill("rejected"));
    expect(scheduler.stats).toMatchObject({ waitingCount: 0, runningCount: 0 });
    expect(scheduler.stats.freeBlockCount).toBe(16);
    expect(await read(loop.generate(request([1, 3])))).toBe("1 stop");
  });
});

describe("a budget of rows", () => {
  const limits = { least: 16, first: 64, most: 256, growMs: 10, shrinkMs: 100 };

  test("doubles after quick steps and halves after slow ones, within its limits", () => {
    const rows = new RowBudget(limits);
    const after = (milliseconds: number) => {
      rows.observe(rows.rows, milliseconds);
      return rows.rows;
    };
    expect([5, 50, 5, 5, 5].map(after)).toEqual([128, 128, 256, 256, 256]);
    expect([500, 500, 500, 500, 500].map(after)).toEqual([128, 64, 32, 16, 16]);
  });

  test("learns nothing from steps that were not full", () => {
    const rows = new RowBudget(limits);
    rows.observe(63, 1);
    expect(rows.rows).toBe(64);
  });
});
