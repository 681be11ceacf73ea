/**
 * A loaded model, on one device or spread over several, that turns tokens into more tokens, for
 * many callers at once, or into logits. Numbers in, numbers out: text and stopping at text are done
 * by others.
 */
import { invariant, UserError } from "../errors.ts";
import { blockTokens } from "../kernels/step.ts";
import type { Model } from "../model/model.ts";
import { partOf, type ModelPart } from "../model/part.ts";
import { fileBytesOf, uploadWeights, type UploadProgress } from "../model/upload.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import type { MemoryGroup } from "../vulkan/memory.ts";
import type { ProfileLine } from "../vulkan/profiler.ts";
import type { FinishReason, GenerationRequest } from "./generation.ts";
import { allocateEngineMemory } from "./memory.ts";
import { cacheBlockCount, planMemory, type MemoryPlan, type PlanWishes } from "./plan.ts";
import { bucketOf } from "./programs.ts";
import { RowBudget } from "./row-budget.ts";
import { Runner, type Flight, type StepStats } from "./runner.ts";
import { Scheduler, type SchedulerStats } from "./scheduler.ts";
import { Sequence } from "./sequence.ts";
import { Stage } from "./stage.ts";
import { TokenLoop } from "./token-loop.ts";

export interface EngineOptions extends PlanWishes {
  /** Results do not depend on how many rows share a step. */
  readonly deterministic?: boolean;
  /** Time every dispatch. */
  readonly profile?: boolean;
  readonly onPlan?: (plan: MemoryPlan) => void;
  readonly onProgress?: (progress: UploadProgress) => void;
}

/** Submissions stay far below the watchdogs of drivers. */
const prefillMs = { growMs: 250, shrinkMs: 800 };
/** Who reads a text while another prompt comes in shall not see it stutter. */
const mixedMs = { growMs: 40, shrinkMs: 120 };
const rowsFirst = 128;
const rowsLeast = 16;
/** Tokens between states that are kept of recurrent layers. */
const checkpointInterval = 16 * blockTokens;

export class Engine {
  /** In the order of the layers. */
  readonly gpus: readonly Gpu[];
  readonly model: Model;
  readonly plan: MemoryPlan;
  readonly #groups: readonly MemoryGroup[];
  readonly #runner: Runner;
  readonly #scheduler: Scheduler;
  readonly #loop: TokenLoop;
  readonly #prefillBudget: RowBudget;

  private constructor(
    model: Model,
    plan: MemoryPlan,
    stages: readonly Stage[],
    groups: readonly MemoryGroup[],
    profile: boolean,
  ) {
    this.gpus = stages.map(({ gpu }) => gpu);
    this.model = model;
    this.plan = plan;
    this.#groups = groups;
    const runner = new Runner(stages);
    const blockCount = cacheBlockCount(plan.cacheTokens);
    // What one device chooses another one does not see.
    const pipelined = !profile && stages.length === 1;
    const stepsInFlight = profile ? 1 : flightCountOf(stages.length);
    const limits = { ...plan, blockCount, checkpointInterval, stepsInFlight };
    const scheduler = new Scheduler({ ...limits, pipelined });
    const most = plan.rowCapacity;
    // Who prefills while all others decode gets some rows, too.
    const least = bucketOf(plan.sequenceCapacity - 1 + rowsLeast);
    const isCpu = this.gpus.every(({ device }) => device.capabilities.kind === "cpu");
    // A processor has no watchdog.
    const prefillBudget = isCpu
      ? new RowBudget({ least: most, first: most, most, ...prefillMs })
      : new RowBudget({ least, first: rowsFirst, most, ...prefillMs });
    const mixedBudget = new RowBudget({ least, first: rowsFirst, most, ...mixedMs });
    const { vocabularySize } = model.config;
    this.#runner = runner;
    this.#scheduler = scheduler;
    this.#prefillBudget = prefillBudget;
    const budgets = { prefillBudget, mixedBudget };
    const waitsForIds = !pipelined;
    this.#loop = new TokenLoop({ scheduler, runner, ...budgets, vocabularySize, waitsForIds });
  }

  /** Plans, allocates and loads. Holds nothing if it throws. */
  static load(gpu: Gpu, model: Model, options: EngineOptions = {}): Promise<Engine> {
    return Engine.loadOver([gpu], () => model, options);
  }

  /**
   * Loads over several devices, in the order of the layers. `describe` gives a description of the
   * model for each: its weights lie there.
   */
  static async loadOver(
    gpus: readonly Gpu[],
    describe: () => Model,
    options: EngineOptions = {},
  ): Promise<Engine> {
    const { deterministic = false, profile = false } = options;
    const models = gpus.map(() => describe());
    const [model] = models;
    invariant(model !== undefined, "no device to load onto");
    const devices = gpus.map(({ device }) => device);
    const plan = planMemory(devices, model, options);
    options.onPlan?.(plan);
    using held = new DisposableStack();
    const groups: MemoryGroup[] = [];
    held.defer(() => groups.forEach((group) => group.free()));
    const loaded = partsOf(models, plan);
    const tell = progressOver(loaded, options.onProgress);
    const stages: Stage[] = [];
    for (const [i, { model: own, part }] of loaded.entries()) {
      const gpu = gpus[i];
      invariant(gpu !== undefined, `device ${i} of ${gpus.length}`);
      groups.push(await uploadWeights(gpu, own.weights.file, part.weights, tell(i)));
      const use = { part, flightCount: flightCountOf(gpus.length) };
      const memory = allocateEngineMemory(gpu, own, plan, use);
      groups.push(...memory.groups);
      stages.push(new Stage(gpu, own, plan, memory, { deterministic, profile }));
    }
    const engine = new Engine(model, plan, stages, groups, profile);
    held.move();
    return engine;
  }

  /** Bytes of memory that are held on the device. */
  get deviceBytes(): number {
    return this.#groups.reduce((sum, group) => sum + group.byteSize, 0);
  }

  get lastStep(): StepStats | undefined {
    return this.#runner.lastStep;
  }

  /** How full it is, and what it has done. */
  get stats(): SchedulerStats {
    return this.#scheduler.stats;
  }

  /** Told the cost of every step in which texts are made. */
  set onStep(listener: ((stats: StepStats) => void) | undefined) {
    this.#loop.onStep = listener;
  }

  /** Time of each kind of dispatch in the last step, if profiling. */
  profile(): ProfileLine[] {
    return this.#runner.profile();
  }

  /**
   * Yields the tokens behind a prompt as they are made and returns why the text ended. Any number
   * of texts may be asked for at once: `plan.sequenceCapacity` of them share the steps, others
   * wait. Leaving the loop, or the request's signal, ends a text before the next step.
   */
  generate(request: GenerationRequest): AsyncGenerator<number, FinishReason> {
    return this.#loop.generate(request);
  }

  /** Forgets what it remembers of texts that are complete. */
  forget(): void {
    this.#scheduler.clearPrefixes();
  }

  createSequence(): Sequence {
    return new Sequence();
  }

  /** Empties a sequence and gives its place and its part of the cache back. */
  release(sequence: Sequence): void {
    const { residence } = sequence;
    if (residence === undefined) return;
    sequence.residence = undefined;
    this.#scheduler.loose.close(residence);
    this.#loop.wake();
  }

  /**
   * Appends tokens to a sequence and returns the logits behind the last one: [vocabularySize],
   * valid until the next step. Long inputs go in chunks.
   */
  append(sequence: Sequence, tokens: readonly number[]): Float32Array {
    invariant(tokens.length > 0, "nothing to append");
    // One chunk ahead of the one that is waited for.
    let ahead: Flight | undefined;
    const landAhead = () => {
      const flight = ahead;
      ahead = undefined;
      if (flight !== undefined) this.#land(flight);
    };
    try {
      for (let start = 0; ;) {
        const part = tokens.slice(start, start + this.#prefillBudget.rows);
        start += part.length;
        const isLast = start === tokens.length;
        if (!this.#runner.hasRoom) landAhead();
        const flight = this.#launch(sequence, part, isLast ? [part.length - 1] : []);
        landAhead();
        if (isLast) return this.#land(flight);
        ahead = flight;
      }
    } finally {
      landAhead();
    }
  }

  /** As `append`, but hands over the logits behind every token, in order. */
  appendAll(
    sequence: Sequence,
    tokens: readonly number[],
    onLogits: (index: number, logits: Float32Array) => void,
  ): void {
    const { vocabularySize } = this.model.config;
    for (let start = 0; start < tokens.length;) {
      const most = Math.min(this.#prefillBudget.rows, this.plan.outputCapacity);
      const part = tokens.slice(start, start + most);
      const logits = this.#land(this.#launch(sequence, part, [...part.keys()]));
      for (let i = 0; i < part.length; i++) {
        onLogits(start + i, logits.subarray(i * vocabularySize, (i + 1) * vocabularySize));
      }
      start += part.length;
    }
  }

  /** Texts in the making end as cancelled. */
  close(): void {
    this.#loop.stop();
    for (const { device } of this.gpus) device.waitIdle();
    this.#runner.free();
    for (const group of this.#groups) group.free();
  }

  /** One step of a sequence alone. */
  #launch(sequence: Sequence, tokens: readonly number[], outputRows: readonly number[]): Flight {
    const started = performance.now();
    const { contextTokens, sequenceCapacity } = this.plan;
    if (sequence.length + tokens.length > contextTokens) {
      throw new UserError(
        "usage",
        `${sequence.length + tokens.length} tokens do not fit the context of ${contextTokens}`,
        "shorten the prompt or choose a longer context with -c",
      );
    }
    this.#loop.settle();
    const { loose } = this.#scheduler;
    sequence.residence ??= loose.open();
    const { residence } = sequence;
    const work = residence && loose.plan(residence, tokens, outputRows);
    if (work === undefined) {
      throw new UserError(
        "failed",
        residence === undefined
          ? `all ${sequenceCapacity} places for texts are taken`
          : `the cache of ${this.plan.cacheTokens} tokens is full of other texts`,
        "finish or cancel one of them first",
      );
    }
    return this.#runner.launch(work, undefined, started);
  }

  /** The logits of the rows of a step that were wanted, packed. */
  #land(flight: Flight): Float32Array {
    this.#runner.land(flight);
    const { rows = 0, waitMs = 0 } = this.lastStep ?? {};
    this.#prefillBudget.observe(rows, waitMs);
    return this.#runner.logitsOf(flight);
  }
}

/** Steps under way at most: two, so that the host is never waited for, or one a device. */
function flightCountOf(stageCount: number): number {
  return Math.max(2, stageCount);
}

function partsOf(models: readonly Model[], plan: MemoryPlan) {
  return models.map((model, i) => {
    const stage = plan.stages[i];
    invariant(stage !== undefined, `device ${i} of ${plan.stages.length}`);
    return { model, part: partOf(model, stage.layers) };
  });
}

/** What is told of each part, as progress of the whole. */
function progressOver(
  loaded: readonly { part: ModelPart }[],
  onProgress: EngineOptions["onProgress"],
) {
  const sizes = loaded.map(({ part }) => fileBytesOf(part.weights));
  const sum = (bytes: readonly number[]) => bytes.reduce((total, size) => total + size, 0);
  const totalBytes = sum(sizes);
  return (index: number) =>
    ({ doneBytes }: UploadProgress) =>
      onProgress?.({ doneBytes: sum(sizes.slice(0, index)) + doneBytes, totalBytes });
}
