/**
 * Thousands of texts that come, end and are given up at random, on caches that are too small for
 * them: what comes out is what each text alone would give, and all is given back.
 */
import { describe, expect, test } from "bun:test";
import { Scheduler, type SchedulerLimits } from "../../src/engine/scheduler.ts";
import type { StepPlan } from "../../src/engine/step-plan.ts";
import { latestToken } from "../../src/kernels/step.ts";
import { hashBehind, HashDevice, tokenOf, vocabularySize } from "../helpers/hash-device.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

/** What a text is to become, and what has become of it. */
interface Text {
  readonly expected: readonly number[];
  readonly finish: "stop" | "length";
  readonly made: number[];
  /** Older ones that had no row yet when it came. */
  readonly olderCount: number;
  hasRows: boolean;
}

interface World {
  readonly limits: SchedulerLimits;
  readonly rowBudget: number;
  readonly textCount: number;
  /** Mean steps between arrivals. */
  readonly gap: number;
  /** Chance of each text to be given up in a step, in thousandths. */
  readonly cancelled: number;
  /** Tokens that a prompt adds to what came before it, at most. */
  readonly promptTokens: number;
  readonly answerTokens: number;
  /** Guesses of what follows come with every text, and any number of them are right. */
  readonly drafts?: boolean;
}

const endToken = 7;

/** What a text gives that is made alone. */
function alone(prompt: readonly number[], maxTokens: number, contextTokens: number) {
  let hash = 0;
  for (const token of prompt) hash = hashBehind(hash, token);
  const expected: number[] = [];
  while (expected.length < maxTokens && prompt.length + expected.length <= contextTokens) {
    const token = tokenOf(hash);
    expected.push(token);
    if (token === endToken) return { expected, finish: "stop" as const };
    hash = hashBehind(hash, token);
  }
  return { expected, finish: "length" as const };
}

class Simulation {
  readonly scheduler: Scheduler;
  readonly #world: World;
  readonly #device: HashDevice;
  readonly #random: SeededRandom;
  readonly #open = new Map<number, Text>();
  readonly #flights: { plan: StepPlan; tokens: number[][] }[] = [];
  /** Conversations to go on with: later prompts share their heads. */
  readonly #histories: number[][] = [];
  readonly #begun: number[] = [];
  readonly #held = new Set<number>();
  #submitted = 0;
  step = 0;
  readonly done = { complete: 0, cancelled: 0 };
  /** Younger ones that began before a text, for each older one that it had to let go first. */
  worstOvertaking = 0;

  constructor(world: World, seed: number) {
    this.#world = world;
    this.scheduler = new Scheduler(world.limits);
    this.#device = new HashDevice(world.limits);
    this.#random = new SeededRandom(seed);
  }

  run(): this {
    const { textCount, gap, rowBudget, limits } = this.#world;
    const { stepsInFlight = 2 } = limits;
    while (this.#submitted < textCount || this.#open.size > 0) {
      expect(this.step++).toBeLessThan(textCount * 200);
      while (this.#submitted < textCount && this.#random.below(gap + 1) === 0) this.#submit();
      this.#cancelSome();
      this.#holdSome();
      this.#guess();
      const plan = this.scheduler.plan(rowBudget);
      if (plan !== undefined) this.#launch(plan);
      if (plan === undefined || this.#flights.length >= stepsInFlight) this.#complete();
      if (this.step % 16 === 0) this.scheduler.check();
    }
    while (this.#flights.length > 0) this.#complete();
    return this;
  }

  #submit(): void {
    const { promptTokens, answerTokens, limits } = this.#world;
    const { contextTokens } = limits;
    const random = this.#random;
    const history = this.#histories[random.below(this.#histories.length * 2)] ?? [];
    const head = history.slice(0, random.below(3) === 0 ? random.below(history.length + 1) : 1e9);
    const more = Array.from({ length: 1 + random.below(promptTokens) }, () =>
      random.below(vocabularySize),
    );
    const prompt = [...head, ...more].slice(0, contextTokens - random.below(40));
    const maxTokens = 1 + random.below(answerTokens);
    const boundaries = head.length > 0 ? [head.length] : [];
    const client = `client ${random.below(5)}`;
    // Some compute all of their prompt, whatever is known of it.
    const reuses = this.#submitted % 8 !== 7;
    const id = this.scheduler.submit({ prompt, maxTokens, boundaries, client, reuses });
    const { expected, finish } = alone(prompt, maxTokens, contextTokens);
    const olderCount = [...this.#open.values()].filter(({ hasRows }) => !hasRows).length;
    this.#open.set(id, { expected, finish, made: [], olderCount, hasRows: false });
    this.#histories[random.below(12)] = [...prompt, ...expected];
    for (let i = 0; i < 12; i++) this.#histories[i] ??= [];
    this.#submitted++;
  }

  #cancelSome(): void {
    for (const id of this.#open.keys()) {
      if (this.#random.below(1000) >= this.#world.cancelled) continue;
      expect(this.scheduler.cancel(id)).toBe(true);
      expect(this.scheduler.cancel(id)).toBe(false);
      this.#open.delete(id);
      this.done.cancelled++;
    }
  }

  /** Whoever reads some texts is slow. */
  #holdSome(): void {
    for (const id of this.#open.keys()) {
      const isHeld = this.#held.has(id) ? this.#random.below(5) > 0 : this.#random.below(200) === 0;
      if (isHeld) this.#held.add(id);
      else this.#held.delete(id);
      this.scheduler.setHeld(id, isHeld);
    }
  }

  #guess(): void {
    const random = this.#random;
    for (const [id, { expected, made }] of this.#world.drafts === true ? this.#open : []) {
      const right = expected.slice(made.length, made.length + random.below(8));
      const wrong = Array.from({ length: random.below(4) }, () => random.below(vocabularySize));
      if (random.below(3) > 0) this.scheduler.propose(id, [...right, ...wrong]);
    }
  }

  #launch(plan: StepPlan): void {
    const { rowBudget, limits } = this.#world;
    expect(plan.rows.length).toBeLessThanOrEqual(rowBudget);
    expect(plan.outputRows.length).toBeLessThanOrEqual(limits.outputCapacity);
    if (!limits.pipelined) expect(plan.rows.map(({ token }) => token)).not.toContain(latestToken);
    for (const { id } of plan.runs) {
      const text = this.#open.get(id);
      // No rows of what has ended, was given up or is held.
      expect(text).toBeDefined();
      expect(this.#held.has(id)).toBe(false);
      if (text === undefined || text.hasRows) continue;
      text.hasRows = true;
      this.#begun.push(id);
      const overtaking = this.#begun.filter((other) => other > id).length;
      this.worstOvertaking = Math.max(this.worstOvertaking, overtaking / (text.olderCount + 1));
    }
    this.#flights.push({ plan, tokens: this.#device.run(plan) });
  }

  #complete(): void {
    const flight = this.#flights.shift();
    if (flight === undefined) return;
    const drafts = flight.plan.runs.flatMap((run) => (run.hasOutput ? [run.drafts] : []));
    const outcomes = flight.tokens.map((made, i) => {
      const tokens = verified(drafts[i] ?? [], made);
      return { tokens, isEnd: tokens.at(-1) === endToken };
    });
    for (const { id, tokens, finish } of this.scheduler.complete(flight.plan, outcomes)) {
      const text = this.#open.get(id);
      expect(text).toBeDefined();
      if (text === undefined) continue;
      expect(tokens).toEqual(text.expected.slice(text.made.length).slice(0, tokens.length));
      text.made.push(...tokens);
      const isLast = text.made.length === text.expected.length;
      expect(finish).toBe(isLast ? text.finish : undefined);
      if (!isLast) continue;
      this.#open.delete(id);
      this.done.complete++;
    }
  }
}

/** What a step has made: the drafts that are what the text gives, and the token behind them. */
function verified(drafts: readonly number[], made: readonly number[]): number[] {
  const wrong = made.findIndex((token, i) => token !== drafts[i] || token === endToken);
  return made.slice(0, wrong + 1);
}

const roomy: SchedulerLimits = {
  blockCount: 200,
  sequenceCapacity: 8,
  checkpointCapacity: undefined,
  contextTokens: 640,
  outputCapacity: 8,
  pipelined: false,
};
const tight = { ...roomy, blockCount: 24, contextTokens: 512 };
const tightest = { ...roomy, blockCount: 10, contextTokens: 320 };
const recurrent = { checkpointCapacity: 12, checkpointInterval: 64 };
const flows = {
  rowBudget: 64,
  textCount: 400,
  gap: 2,
  cancelled: 1,
  promptTokens: 90,
  answerTokens: 60,
};
const drafted = { ...flows, gap: 20, drafts: true };
const spare = { spareCapacity: 4 };
const long = { ...flows, promptTokens: 40, answerTokens: 250 };

describe.each([
  ["a roomy cache", { ...flows, limits: roomy }],
  ["a tight cache", { ...flows, limits: tight }],
  ["a cache of one context", { ...flows, limits: tightest }],
  ["a hybrid with room", { ...flows, limits: { ...roomy, ...recurrent } }],
  ["a tight hybrid", { ...flows, limits: { ...tight, ...recurrent } }],
  [
    "a hybrid with few checkpoints",
    { ...flows, limits: { ...tightest, checkpointCapacity: 2, checkpointInterval: 32 } },
  ],
  ["a hybrid without checkpoints", { ...flows, limits: { ...tight, checkpointCapacity: 0 } }],
  ["a small budget of rows", { ...flows, rowBudget: 8, limits: tight }],
  ["many that give up", { ...flows, cancelled: 20, limits: { ...tight, ...recurrent } }],
  ["long answers", { ...long, limits: tight }],
  ["long answers of a hybrid", { ...long, limits: { ...tight, ...recurrent } }],
  ["all at once", { ...flows, gap: 0, limits: { ...tight, ...recurrent } }],
  ["drafts", { ...drafted, limits: roomy }],
  ["drafts and a cache of one context", { ...drafted, limits: tightest }],
  ["drafts of a hybrid", { ...drafted, limits: { ...roomy, ...recurrent, spareCapacity: 2 } }],
  ["drafts of a tight hybrid", { ...drafted, limits: { ...tight, ...recurrent, ...spare } }],
  [
    "drafts of a hybrid without checkpoints",
    { ...drafted, limits: { ...tight, checkpointCapacity: 0, ...spare } },
  ],
  [
    "drafts, many that give up",
    { ...drafted, cancelled: 20, limits: { ...tight, ...recurrent, ...spare } },
  ],
] as const)("%s", (_name, world: World) => {
  test.each([
    ["one step after the other", { pipelined: false }],
    ["one ahead of the ids", { pipelined: true }],
    ["several under way that wait for ids", { pipelined: false, stepsInFlight: 3 }],
  ])("gives every text what it gets alone, %s", (_unused, mode) => {
    for (const seed of [1, 2]) {
      const limits = { ...world.limits, ...mode };
      const simulation = new Simulation({ ...world, limits }, seed).run();
      const { scheduler, done, worstOvertaking } = simulation;
      expect(done.complete + done.cancelled).toBe(world.textCount);
      expect(worstOvertaking).toBeLessThan(8);
      scheduler.check();
      const { waitingCount, runningCount, totals } = scheduler.stats;
      expect({ waitingCount, runningCount }).toEqual({ waitingCount: 0, runningCount: 0 });
      if (world.drafts === true) {
        expect(totals.accepted).toBeGreaterThan(20);
        expect(totals.drafted).toBeGreaterThan(totals.accepted + 20);
      } else expect(totals.drafted).toBe(0);
      if (world.answerTokens === long.answerTokens) expect(totals.preemptions).toBeGreaterThan(2);
      scheduler.clearPrefixes();
      expect(scheduler.stats.freeBlockCount).toBe(limits.blockCount);
    }
  });
});
