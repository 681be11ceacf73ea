/**
 * A loaded model, on one device or spread over several, that turns tokens into more tokens, for
 * many callers at once, or into logits. Numbers in, numbers out: text and stopping at text are done
 * by others.
 */
import { invariant, UserError } from "../errors.ts";
import { blockTokens } from "../kernels/step.ts";
import type { Model } from "../model/model.ts";
import type { UploadProgress } from "../model/upload.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import type { MemoryGroup } from "../vulkan/memory.ts";
import type { ProfileLine } from "../vulkan/profiler.ts";
import { DraftAccount, type DraftJudge } from "./draft-account.ts";
import { draftedRowCounts } from "./draft-rows.ts";
import type { Drafter, DraftSource } from "./drafter.ts";
import { EmbeddingPool } from "./embedding.ts";
import type { EmbeddingRequest, FinishReason, GenerationRequest } from "./generation.ts";
import { Lookahead, PredictedTokens } from "./lookahead.ts";
import { NgramDrafter } from "./ngram-drafter.ts";
import { cacheBlockCount, planMemory, type MemoryPlan, type PlanWishes } from "./plan.ts";
import { bucketOf, flightCountOf } from "./programs.ts";
import { PredictorPasses } from "./predictor-passes.ts";
import { RowBudget } from "./row-budget.ts";
import { Runner, type Flight, type StepStats } from "./runner.ts";
import { HostSampler } from "./sampler.ts";
import { defaultSampling } from "./sampling.ts";
import { Scheduler } from "./scheduler.ts";
import type { SchedulerStats } from "./scheduler-stats.ts";
import { Sequence } from "./sequence.ts";
import { Speculation } from "./speculation.ts";
import { loadStages, type LoadedStages } from "./stage-loader.ts";
import { TokenLoop } from "./token-loop.ts";
import type { TuningResult, TuningWishes } from "./tuner.ts";

export interface EngineOptions extends PlanWishes {
  /** Results do not depend on how many rows share a step. */
  readonly deterministic?: boolean;
  /** Time every dispatch. */
  readonly profile?: boolean;
  /** Decides when drafts pay; by default it is measured. */
  readonly draftJudge?: DraftJudge;
  /** Lay kernels out as measurements on the device say; by default they follow their own rules. */
  readonly tuning?: TuningWishes | undefined;
  readonly onPlan?: (plan: MemoryPlan) => void;
  readonly onProgress?: (progress: UploadProgress) => void;
}

const drafterMakers: Readonly<Record<DraftSource, () => Drafter | undefined>> = {
  ngram: () => new NgramDrafter(),
  mtp: () => new PredictedTokens(),
  off: () => undefined,
};

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
  /** What was measured when it was loaded. */
  readonly tuning: readonly TuningResult[];
  readonly #groups: readonly MemoryGroup[];
  readonly #runner: Runner;
  #passes: PredictorPasses | undefined;
  readonly #scheduler: Scheduler;
  readonly #loop: TokenLoop;
  readonly #prefillBudget: RowBudget;

  private constructor(
    model: Model,
    plan: MemoryPlan,
    { stages, groups, tuning }: LoadedStages,
    { deterministic = false, profile = false, drafts = "off", draftJudge }: EngineOptions,
  ) {
    this.gpus = stages.map(({ gpu }) => gpu);
    this.model = model;
    this.plan = plan;
    this.tuning = tuning;
    this.#groups = groups;
    const runner = new Runner(stages);
    const blockCount = cacheBlockCount(plan.cacheTokens);
    // What one device chooses another one does not see.
    const waitsForIds = stages.length > 1;
    const pipelined = !profile && !waitsForIds;
    const stepsInFlight = profile ? 1 : flightCountOf(stages.length);
    const limits = { ...plan, blockCount, checkpointInterval, stepsInFlight };
    const scheduler = new Scheduler({ ...limits, pipelined });
    const { prefillBudget, mixedBudget } = budgetsOf(plan, areCpus(this.gpus));
    const { vocabularySize } = model.config;
    let lookahead: Lookahead | undefined;
    const isRecurrent = plan.checkpointCapacity !== undefined;
    const speculation = new Speculation(draftJudge ?? new DraftAccount(isRecurrent));
    const [stage] = stages;
    if (drafts === "mtp" && stage !== undefined) {
      const { tunings } = stage;
      const options = { deterministic, profile, tunings };
      const passes = new PredictorPasses(stage.gpu, model, stage.memory, options);
      passes.prepare();
      this.#passes = passes;
      lookahead = new Lookahead({ scheduler, runner, speculation, passes });
    }
    if (drafts !== "off") draftedRowCounts.forEach((rows) => runner.prepare(rows));
    this.#runner = runner;
    this.#scheduler = scheduler;
    this.#prefillBudget = prefillBudget;
    this.#loop = new TokenLoop({
      ...{ scheduler, runner, prefillBudget, mixedBudget, vocabularySize, waitsForIds },
      ...{ speculation, lookahead, createDrafter: drafterMakers[drafts] },
    });
  }

  /** Plans, allocates and loads. Holds nothing if it throws. */
  static load(gpu: Gpu, model: Model, wishes: EngineOptions = {}): Promise<Engine> {
    return Engine.loadOver([gpu], () => model, wishes);
  }

  /**
   * Loads over several devices, in the order of the layers. `describe` gives a description of the
   * model for each: its weights lie there.
   */
  static async loadOver(
    gpus: readonly Gpu[],
    describe: () => Model,
    wishes: EngineOptions = {},
  ): Promise<Engine> {
    // To a processor, which is never short of bandwidth, each row costs as much as the first.
    const drafts = wishes.drafts ?? (areCpus(gpus) ? "off" : "ngram");
    const options = { ...wishes, drafts };
    const sites = gpus.map((gpu) => ({ gpu, model: describe() }));
    const model = sites[0]?.model;
    invariant(model !== undefined, "no device to load onto");
    if (drafts === "mtp") requirePredictor(model, gpus.length);
    const devices = gpus.map(({ device }) => device);
    const plan = planMemory(devices, model, options);
    options.onPlan?.(plan);
    const { deterministic = false, profile = false, tuning, onProgress } = options;
    const loaded = await loadStages(sites, plan, { deterministic, profile, tuning }, onProgress);
    try {
      return new Engine(model, plan, loaded, options);
    } catch (error) {
      for (const group of loaded.groups) group.free();
      throw error;
    }
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

  /**
   * The embedding of a text: what the model makes of it, pooled as the file says and of length 1.
   * Undefined if the signal ends it. Throws a "usage" error for a model that gives none.
   */
  async embed({ dimensions, ...request }: EmbeddingRequest): Promise<Float32Array | undefined> {
    const { pooling, width, name } = this.model.config;
    if (pooling === "rank") {
      throw new UserError("usage", `${name} ranks texts and gives no embeddings`);
    }
    const pool = new EmbeddingPool(pooling, width);
    const tokens = this.generate({
      ...request,
      // The token that follows comes with the last row, and nobody asks for it.
      sampler: new HostSampler({ ...defaultSampling, temperature: 0 }),
      maxTokens: 1,
      endTokens: new Set(),
      reuses: pooling === "last",
      onHidden: (position, rows) => pool.add(position, rows),
    });
    for (;;) {
      const next = await tokens.next();
      if (next.done !== true) continue;
      return next.value === "cancelled" ? undefined : pool.vector(dimensions);
    }
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
    this.#passes?.free();
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

function areCpus(gpus: readonly Gpu[]): boolean {
  return gpus.every(({ device }) => device.capabilities.kind === "cpu");
}

/** Of steps that only prefill, and of those in which others wait for their next token. */
function budgetsOf(plan: MemoryPlan, isCpu: boolean) {
  const most = plan.rowCapacity;
  // Who prefills while all others decode gets some rows, too.
  const least = bucketOf(plan.sequenceCapacity - 1 + rowsLeast);
  // A processor has no watchdog.
  const prefillBudget = isCpu
    ? new RowBudget({ least: most, first: most, most, ...prefillMs })
    : new RowBudget({ least, first: rowsFirst, most, ...prefillMs });
  return {
    prefillBudget,
    mixedBudget: new RowBudget({ least, first: rowsFirst, most, ...mixedMs }),
  };
}

function requirePredictor({ predictor, config }: Model, deviceCount: number): void {
  const remedy = "let guesses be looked up in the text (ngram)";
  const guessers = "layers that guess further tokens (mtp)";
  if (predictor === undefined) {
    throw new UserError("usage", `${config.name} has no ${guessers}`, remedy);
  }
  if (deviceCount > 1) {
    const message = `${guessers} run on one device, and ${deviceCount} are named`;
    throw new UserError("usage", message, remedy);
  }
}
