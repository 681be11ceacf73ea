/**
 * Runs steps on the device: writes what changes, submits the recorded program for so many rows,
 * waits. It does as it is told and knows no texts.
 */
import { writeBlockTable, writeStep, type StepShape } from "../kernels/step.ts";
import type { Model } from "../model/model.ts";
import { hostBytes } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import type { ProfileLine } from "../vulkan/profiler.ts";
import { CacheCopier } from "./cache-copier.ts";
import type { EngineMemory } from "./memory.ts";
import { cacheBlockCount, type MemoryPlan } from "./plan.ts";
import { bucketOf, Programs, type ProgramOptions, type RecordedPass } from "./programs.ts";
import type { StepWork } from "./step-plan.ts";

/** What a step cost. */
export interface StepStats {
  readonly rows: number;
  /** Rows whose logits were wanted. */
  readonly outputs: number;
  readonly submits: number;
  readonly dispatches: number;
  readonly barriers: number;
  /** Time in which the host was busy and did not wait. */
  hostMs: number;
  /** Time in which it waited. */
  readonly waitMs: number;
  /** Read from the device when it is asked for, so ask before the next step. */
  readonly gpuMs: number;
}

export class Runner {
  readonly #gpu: Gpu;
  readonly #plan: MemoryPlan;
  readonly #vocabularySize: number;
  readonly #programs: Programs;
  readonly #copier: CacheCopier;
  readonly #shape: StepShape;
  readonly #stepWords: Uint32Array;
  readonly #logits: Float32Array;
  #lastPass: RecordedPass | undefined;
  #lastStep: StepStats | undefined;

  constructor(
    gpu: Gpu,
    model: Model,
    plan: MemoryPlan,
    memory: EngineMemory,
    options: ProgramOptions,
  ) {
    this.#gpu = gpu;
    this.#plan = plan;
    this.#vocabularySize = model.config.vocabularySize;
    this.#programs = new Programs(gpu, model, memory, options);
    const { cacheTokens, sequenceCapacity, checkpointCapacity = 0 } = plan;
    const blockCount = cacheBlockCount(cacheTokens);
    const stateCount = sequenceCapacity + checkpointCapacity;
    this.#copier = new CacheCopier(gpu, { ...memory, blockCount, stateCount });
    this.#shape = memory.shape;
    const step = hostBytes(memory.step);
    this.#stepWords = new Uint32Array(step.buffer, step.byteOffset, step.byteLength / 4);
    const logits = hostBytes(memory.readback);
    this.#logits = new Float32Array(logits.buffer, logits.byteOffset, logits.byteLength / 4);
  }

  /**
   * The logits of the rows that have an output, in order: [outputs, vocabularySize], valid until
   * the next step. `started` is when the host began to work on the step.
   */
  run({ copies, tables, rows, outputRows }: StepWork, started = performance.now()): Float32Array {
    const pass = this.#passFor(rows.length, outputRows.length);
    const copySubmits = this.#copier.submit(copies);
    for (const { slot, from, blocks } of tables) {
      writeBlockTable(this.#stepWords, this.#shape, slot, blocks, from);
    }
    writeStep(this.#stepWords, this.#shape, rows, outputRows);
    const { timeline } = this.#gpu;
    const submission = timeline.submit(pass.program.commands, pass.program.label);
    const submitted = performance.now();
    timeline.wait(submission);
    const done = performance.now();
    this.#lastPass = pass;
    this.#lastStep = {
      rows: rows.length,
      outputs: outputRows.length,
      submits: 1 + copySubmits,
      dispatches: pass.program.dispatchCount,
      barriers: pass.program.barrierCount,
      hostMs: submitted - started,
      waitMs: done - submitted,
      get gpuMs() {
        return pass.timer.milliseconds();
      },
    };
    return this.#logits.subarray(0, outputRows.length * this.#vocabularySize);
  }

  get lastStep(): StepStats | undefined {
    return this.#lastStep;
  }

  /** Time of each kind of dispatch in the last step, if profiling. */
  profile(): ProfileLine[] {
    return this.#lastPass?.profiler?.read() ?? [];
  }

  free(): void {
    this.#programs.free();
    this.#copier.free();
  }

  #passFor(rowCount: number, outputCount: number): RecordedPass {
    const outputCapacity =
      outputCount <= 1 ? outputCount : Math.min(bucketOf(outputCount), this.#plan.outputCapacity);
    return this.#programs.get(bucketOf(rowCount), outputCapacity);
  }
}
