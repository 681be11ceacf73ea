/**
 * A loaded model that turns tokens into more tokens, for many callers at once, or into logits.
 * Numbers in, numbers out: text and stopping at text are done by others.
 */
import { invariant, UserError } from "../errors.ts";
import { blockTokens } from "../kernels/step.ts";
import { probeFragments } from "../kernels/fragments.ts";
import type { Model } from "../model/model.ts";
import { uploadWeights, type UploadProgress } from "../model/upload.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import type { MemoryGroup } from "../vulkan/memory.ts";
import type { ProfileLine } from "../vulkan/profiler.ts";
import type { FinishReason, GenerationRequest } from "./generation.ts";
import { allocateEngineMemory, type EngineMemory } from "./memory.ts";
import { cacheBlockCount, planMemory, type MemoryPlan, type PlanWishes } from "./plan.ts";
import { bucketOf } from "./programs.ts";
import { RowBudget } from "./row-budget.ts";
import { Runner, type StepStats } from "./runner.ts";
import { Scheduler, type SchedulerStats } from "./scheduler.ts";
import { Sequence } from "./sequence.ts";
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
  readonly gpu: Gpu;
  readonly model: Model;
  readonly plan: MemoryPlan;
  readonly #groups: readonly MemoryGroup[];
  readonly #runner: Runner;
  readonly #scheduler: Scheduler;
  readonly #loop: TokenLoop;
  readonly #prefillBudget: RowBudget;

  private constructor(
    gpu: Gpu,
    model: Model,
    plan: MemoryPlan,
    memory: EngineMemory,
    { deterministic = false, profile = false }: EngineOptions,
  ) {
    this.gpu = gpu;
    this.model = model;
    this.plan = plan;
    this.#groups = memory.groups;
    const runner = new Runner(gpu, model, plan, memory, { deterministic, profile });
    const blockCount = cacheBlockCount(plan.cacheTokens);
    const limits = { ...plan, blockCount, checkpointInterval };
    const scheduler = new Scheduler({ ...limits, pipelined: !profile });
    const most = plan.rowCapacity;
    // Who prefills while all others decode gets some rows, too.
    const least = bucketOf(plan.sequenceCapacity - 1 + rowsLeast);
    const isCpu = gpu.device.capabilities.kind === "cpu";
    // A processor has no watchdog.
    const prefillBudget = isCpu
      ? new RowBudget({ least: most, first: most, most, ...prefillMs })
      : new RowBudget({ least, first: rowsFirst, most, ...prefillMs });
    const mixedBudget = new RowBudget({ least, first: rowsFirst, most, ...mixedMs });
    const { vocabularySize } = model.config;
    this.#runner = runner;
    this.#scheduler = scheduler;
    this.#prefillBudget = prefillBudget;
    this.#loop = new TokenLoop({ scheduler, runner, prefillBudget, mixedBudget, vocabularySize });
  }

  /** Plans, allocates and loads. Holds nothing if it throws. */
  static async load(gpu: Gpu, model: Model, options: EngineOptions = {}): Promise<Engine> {
    probeFragments(gpu);
    const plan = planMemory(gpu.device, model, options);
    options.onPlan?.(plan);
    const weights = await uploadWeights(gpu, model.weights, options.onProgress);
    try {
      const memory = allocateEngineMemory(gpu, model, plan);
      const groups = [weights, ...memory.groups];
      return new Engine(gpu, model, plan, { ...memory, groups }, options);
    } catch (error) {
      weights.free();
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
    for (let start = 0; ;) {
      const part = tokens.slice(start, start + this.#prefillBudget.rows);
      start += part.length;
      const isLast = start === tokens.length;
      const logits = this.#feed(sequence, part, isLast ? [part.length - 1] : []);
      if (isLast) return logits;
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
      const logits = this.#feed(sequence, part, [...part.keys()]);
      for (let i = 0; i < part.length; i++) {
        onLogits(start + i, logits.subarray(i * vocabularySize, (i + 1) * vocabularySize));
      }
      start += part.length;
    }
  }

  /** Texts in the making end as cancelled. */
  close(): void {
    this.#loop.stop();
    this.gpu.device.waitIdle();
    this.#runner.free();
    for (const group of this.#groups) group.free();
  }

  /** One step of a sequence alone, and the logits of some of its rows, packed. */
  #feed(
    sequence: Sequence,
    tokens: readonly number[],
    outputRows: readonly number[],
  ): Float32Array {
    const started = performance.now();
    const { contextTokens, sequenceCapacity } = this.plan;
    if (sequence.length + tokens.length > contextTokens) {
      throw new UserError(
        "usage",
        `${sequence.length + tokens.length} tokens do not fit the context of ${contextTokens}`,
        "shorten the prompt or choose a longer context with -c",
      );
    }
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
    const logits = this.#runner.run(work, started);
    const { waitMs = 0 } = this.lastStep ?? {};
    this.#prefillBudget.observe(tokens.length, waitMs);
    return logits;
  }
}
