/**
 * A loaded model that turns tokens into logits. Numbers in, numbers out: text, sampling and
 * stopping are done by others. One step is: write the rows, submit a recorded program, wait, look
 * at the logits.
 */
import { invariant, UserError } from "../errors.ts";
import {
  blockTokens,
  writeBlockTable,
  writeStep,
  type StepRow,
  type StepShape,
} from "../kernels/step.ts";
import type { Model } from "../model/model.ts";
import { uploadWeights, type UploadProgress } from "../model/upload.ts";
import { hostBytes } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import type { MemoryGroup } from "../vulkan/memory.ts";
import type { ProfileLine } from "../vulkan/profiler.ts";
import { KvBlocks } from "./kv-blocks.ts";
import { allocateEngineMemory, type EngineMemory } from "./memory.ts";
import { cacheBlockCount, planMemory, type MemoryPlan } from "./plan.ts";
import { bucketOf, Programs, type RecordedPass } from "./programs.ts";
import { Sequence } from "./sequence.ts";
import { nextTurn } from "./turn.ts";

export interface EngineOptions {
  /** The longest that fits, up to the model's own, by default. */
  readonly contextTokens?: number | undefined;
  /** Results do not depend on how many rows share a step. */
  readonly deterministic?: boolean;
  /** Time every dispatch. */
  readonly profile?: boolean;
  readonly onPlan?: (plan: MemoryPlan) => void;
  readonly onProgress?: (progress: UploadProgress) => void;
}

/** What a step cost. */
export interface StepStats {
  readonly rows: number;
  readonly submits: number;
  readonly dispatches: number;
  readonly barriers: number;
  /** Time in which the host was busy and did not wait. */
  readonly hostMs: number;
  readonly gpuMs: number;
}

/**
 * Prefill chunks grow and shrink to keep a submission within these, far below the watchdogs of
 * drivers.
 */
const chunkMsGrow = 250;
const chunkMsShrink = 800;
const chunkRowsFirst = 128;
const chunkRowsMin = 16;

export class Engine {
  readonly gpu: Gpu;
  readonly model: Model;
  readonly plan: MemoryPlan;
  readonly #groups: readonly MemoryGroup[];
  readonly #programs: Programs;
  readonly #shape: StepShape;
  readonly #stepWords: Uint32Array;
  readonly #logits: Float32Array;
  readonly #blocks: KvBlocks;
  #chunkRows: number;
  #lastStep: StepStats | undefined;
  #lastPass: RecordedPass | undefined;

  private constructor(
    gpu: Gpu,
    model: Model,
    plan: MemoryPlan,
    memory: EngineMemory,
    options: EngineOptions,
  ) {
    this.gpu = gpu;
    this.model = model;
    this.plan = plan;
    this.#groups = memory.groups;
    this.#shape = memory.shape;
    const step = hostBytes(memory.step);
    this.#stepWords = new Uint32Array(step.buffer, step.byteOffset, step.byteLength / 4);
    const logits = hostBytes(memory.readback);
    this.#logits = new Float32Array(logits.buffer, logits.byteOffset, logits.byteLength / 4);
    this.#blocks = new KvBlocks(cacheBlockCount(plan.contextTokens));
    this.#chunkRows = gpu.device.capabilities.kind === "cpu" ? plan.rowCapacity : chunkRowsFirst;
    const { deterministic = false, profile = false } = options;
    this.#programs = new Programs(gpu, model, memory, { deterministic, profile });
  }

  /** Plans, allocates and loads. Holds nothing if it throws. */
  static async load(gpu: Gpu, model: Model, options: EngineOptions = {}): Promise<Engine> {
    const plan = planMemory(gpu.device, model, options.contextTokens);
    options.onPlan?.(plan);
    const weights = await uploadWeights(gpu, model.weights, options.onProgress);
    try {
      const memory = allocateEngineMemory(gpu, model, plan);
      return new Engine(
        gpu,
        model,
        plan,
        { ...memory, groups: [weights, ...memory.groups] },
        options,
      );
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
    return this.#lastStep;
  }

  /** Time of each kind of dispatch in the last step, if profiling. */
  profile(): ProfileLine[] {
    return this.#lastPass?.profiler?.read() ?? [];
  }

  createSequence(): Sequence {
    return new Sequence(0);
  }

  /** Empties a sequence and gives its part of the cache back. */
  release(sequence: Sequence): void {
    this.#blocks.release(sequence.blocks.splice(0));
    sequence.length = 0;
  }

  /**
   * Appends tokens to a sequence and returns the logits behind the last one: [vocabularySize],
   * valid until the next call. Long inputs go in chunks.
   */
  append(sequence: Sequence, tokens: readonly number[]): Float32Array {
    const chunks = this.#appendChunks(sequence, tokens);
    for (;;) {
      const chunk = chunks.next();
      if (chunk.done === true) return chunk.value;
    }
  }

  /**
   * As `append`, but the event loop turns between chunks, so that signals and timers get theirs.
   * Undefined if `isCancelled` said so there.
   */
  async appendInTurns(
    sequence: Sequence,
    tokens: readonly number[],
    isCancelled: () => boolean,
  ): Promise<Float32Array | undefined> {
    const chunks = this.#appendChunks(sequence, tokens);
    for (;;) {
      const chunk = chunks.next();
      if (chunk.done === true) return chunk.value;
      await nextTurn();
      if (isCancelled()) return undefined;
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
      const count = Math.min(this.#chunkRows, this.plan.outputCapacity, tokens.length - start);
      const part = tokens.slice(start, start + count);
      const logits = this.#step(
        sequence,
        part,
        part.map((_token, i) => i),
      );
      for (let i = 0; i < count; i++) {
        onLogits(start + i, logits.subarray(i * vocabularySize, (i + 1) * vocabularySize));
      }
      start += count;
    }
  }

  close(): void {
    this.gpu.device.waitIdle();
    this.#programs.free();
    for (const group of this.#groups) group.free();
  }

  /** Appends a chunk a turn and returns the logits behind the last token. */
  *#appendChunks(sequence: Sequence, tokens: readonly number[]): Generator<void, Float32Array> {
    invariant(tokens.length > 0, "nothing to append");
    for (let start = 0; ;) {
      const end = Math.min(start + this.#chunkRows, tokens.length);
      const isLast = end === tokens.length;
      const logits = this.#step(
        sequence,
        tokens.slice(start, end),
        isLast ? [end - start - 1] : [],
      );
      if (isLast) return logits;
      yield;
      start = end;
    }
  }

  /** One submission: rows of one sequence, and the logits of some of them, packed. */
  #step(
    sequence: Sequence,
    tokens: readonly number[],
    outputRows: readonly number[],
  ): Float32Array {
    const started = performance.now();
    this.#reserve(sequence, tokens.length);
    const rows: StepRow[] = tokens.map((token, i) => ({
      token,
      position: sequence.length + i,
      sequence: sequence.slot,
    }));
    const pass = this.#passFor(tokens.length, outputRows.length);
    writeStep(this.#stepWords, this.#shape, rows, outputRows);
    const { timeline } = this.gpu;
    const submission = timeline.submit(pass.program.commands, pass.program.label);
    const submitted = performance.now();
    timeline.wait(submission);
    const done = performance.now();
    sequence.length += tokens.length;
    this.#adaptChunk(tokens.length, done - submitted);
    this.#lastPass = pass;
    const gpuMs = pass.timer.milliseconds();
    this.#lastStep = {
      rows: tokens.length,
      submits: 1,
      dispatches: pass.program.dispatchCount,
      barriers: pass.program.barrierCount,
      hostMs: submitted - started + (performance.now() - done),
      gpuMs,
    };
    return this.#logits.subarray(0, outputRows.length * this.model.config.vocabularySize);
  }

  #passFor(rowCount: number, outputCount: number): RecordedPass {
    const rowCapacity = bucketOf(rowCount);
    const outputCapacity =
      outputCount <= 1 ? outputCount : Math.min(bucketOf(outputCount), this.plan.outputCapacity);
    return this.#programs.get(rowCapacity, outputCapacity);
  }

  /** Makes room in the cache; the caller sees to it that a text does not outgrow the context. */
  #reserve(sequence: Sequence, count: number): void {
    const { contextTokens } = this.plan;
    if (sequence.length + count > contextTokens) {
      throw new UserError(
        "usage",
        `${sequence.length + count} tokens do not fit the context of ${contextTokens}`,
        "shorten the prompt or choose a longer context with -c",
      );
    }
    const missing = sequence.blocksNeeded(count, blockTokens);
    if (missing === 0) return;
    sequence.blocks.push(...this.#blocks.allocate(missing));
    writeBlockTable(this.#stepWords, this.#shape, sequence.slot, sequence.blocks);
  }

  #adaptChunk(rows: number, milliseconds: number): void {
    if (this.gpu.device.capabilities.kind === "cpu" || rows < this.#chunkRows) return;
    if (milliseconds < chunkMsGrow)
      this.#chunkRows = Math.min(this.#chunkRows * 2, this.plan.rowCapacity);
    if (milliseconds > chunkMsShrink) this.#chunkRows = Math.max(this.#chunkRows / 2, chunkRowsMin);
  }
}
