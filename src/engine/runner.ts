/**
 * Runs steps on the device: writes what changes, submits the recorded program for so many rows,
 * and tells what came of it. Two steps may be under way. It does as it is told and knows no texts.
 */
import { invariant } from "../errors.ts";
import { canSample, writeSamplings, type OutputSampling } from "../kernels/sample.ts";
import { writeBlockTable, writeStep, type StepShape } from "../kernels/step.ts";
import type { Model } from "../model/model.ts";
import { hostBytes, type BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import type { ProfileLine } from "../vulkan/profiler.ts";
import { CacheCopier } from "./cache-copier.ts";
import type { EngineMemory } from "./memory.ts";
import type { TableChange } from "./paged-cache.ts";
import { cacheBlockCount, stateCount, type MemoryPlan } from "./plan.ts";
import {
  bucketOf,
  Programs,
  type PassKey,
  type ProgramOptions,
  type RecordedPass,
} from "./programs.ts";
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

/** A step under way. */
export interface Flight {
  readonly pass: RecordedPass;
  readonly rows: number;
  readonly outputs: number;
  readonly submits: number;
  readonly submission: number;
  /** The number of its memory. */
  readonly index: number;
  readonly hostMs: number;
  /** Its program had to be recorded. */
  readonly isNew: boolean;
}

/** What a step uses alone, as the host sees it. */
interface FlightView {
  readonly step: Uint32Array;
  readonly samplings: Uint8Array;
  readonly tokens: Uint32Array;
  /** Changes of the block tables that its step buffer has not seen. */
  tables: TableChange[];
  submission: number;
}

export class Runner {
  readonly #gpu: Gpu;
  readonly #plan: MemoryPlan;
  readonly #vocabularySize: number;
  readonly #width: number;
  readonly #programs: Programs;
  readonly #copier: CacheCopier;
  readonly #shape: StepShape;
  readonly #flights: readonly FlightView[];
  readonly #logits: Float32Array;
  readonly #hidden: Float32Array;
  /** Of `#flights`, the one that the next step takes. */
  #next = 0;
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
    this.#width = model.config.width;
    this.#programs = new Programs(gpu, model, memory, options);
    const blockCount = cacheBlockCount(plan.cacheTokens);
    this.#copier = new CacheCopier(gpu, { ...memory, blockCount, stateCount: stateCount(plan) });
    this.#shape = memory.shape;
    this.#flights = memory.flights.map(({ step, samplings, tokens }) => ({
      step: words(step),
      samplings: hostBytes(samplings),
      tokens: words(tokens),
      tables: [],
      submission: 0,
    }));
    this.#logits = floats(memory.readback);
    this.#hidden = floats(memory.hiddenReadback);
  }

  /** Whether the device can choose tokens of this vocabulary. */
  get canSample(): boolean {
    return canSample(this.#vocabularySize);
  }

  /** Records what steps of so many rows, all of them sampled, will need: none waits for it then. */
  prepare(rows: number): void {
    const wishes = { samples: this.canSample, hidden: false };
    for (const index of this.#flights.keys()) this.#passFor(index, rows, rows, wishes);
  }

  /** What has changed in the block tables beside the steps. */
  tell(tables: readonly TableChange[]): void {
    for (const { tables: unseen } of this.#flights) unseen.push(...tables);
  }

  /**
   * Submits a step. With `samplings`, one for each output, the device chooses the tokens; with
   * `hidden`, the hidden states of its rows can be read. `started` is when the host began to work
   * on it.
   */
  launch(
    { copies, tables, rows, outputRows }: StepWork,
    samplings?: readonly OutputSampling[],
    started = performance.now(),
    hidden = false,
  ): Flight {
    const { timeline } = this.#gpu;
    const index = this.#next;
    const view = this.#flights[index];
    invariant(view !== undefined, `flight ${index}`);
    this.#next = (index + 1) % this.#flights.length;
    this.tell(tables);
    const knownCount = this.#programs.count;
    const samples = samplings !== undefined;
    const pass = this.#passFor(index, rows.length, outputRows.length, { samples, hidden });
    timeline.wait(view.submission);
    const copySubmits = this.#copier.submit(copies);
    for (const { slot, from, blocks } of view.tables) {
      writeBlockTable(view.step, this.#shape, slot, blocks, from);
    }
    view.tables = [];
    writeStep(view.step, this.#shape, rows, outputRows);
    if (samplings !== undefined) writeSamplings(view.samplings, pass.outputCapacity, samplings);
    view.submission = timeline.submit(pass.program.commands, pass.program.label);
    return {
      pass,
      rows: rows.length,
      outputs: outputRows.length,
      submits: 1 + copySubmits,
      submission: view.submission,
      index,
      hostMs: performance.now() - started,
      isNew: this.#programs.count > knownCount,
    };
  }

  /** Waits for a step; the oldest first. */
  land({ pass, rows, outputs, submits, submission, hostMs }: Flight): void {
    const started = performance.now();
    this.#gpu.timeline.wait(submission);
    this.#lastPass = pass;
    this.#lastStep = {
      rows,
      outputs,
      submits,
      dispatches: pass.program.dispatchCount,
      barriers: pass.program.barrierCount,
      hostMs,
      waitMs: performance.now() - started,
      get gpuMs() {
        return pass.timer.milliseconds();
      },
    };
  }

  /** The tokens that the device chose in a step that landed, valid until the second one from it. */
  tokensOf({ index, outputs }: Flight): Uint32Array {
    const view = this.#flights[index];
    invariant(view !== undefined, `flight ${index}`);
    return view.tokens.subarray(0, outputs);
  }

  /** The logits of a step that landed: [outputs, vocabularySize], valid until the next step. */
  logitsOf({ outputs }: Flight): Float32Array {
    return this.#logits.subarray(0, outputs * this.#vocabularySize);
  }

  /** Hidden states of a step that landed: [rows, width], valid until the next step. */
  hiddenOf({ rows }: Flight): Float32Array {
    return this.#hidden.subarray(0, rows * this.#width);
  }

  /** A step from its beginning to its end: the logits of its outputs. */
  run(work: StepWork, started = performance.now()): Float32Array {
    const flight = this.launch(work, undefined, started);
    this.land(flight);
    return this.logitsOf(flight);
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

  #passFor(
    flight: number,
    rows: number,
    outputs: number,
    wishes: Pick<PassKey, "samples" | "hidden">,
  ): RecordedPass {
    const outputCapacity =
      outputs <= 1 ? outputs : Math.min(bucketOf(outputs), this.#plan.outputCapacity);
    return this.#programs.get({ flight, rowCapacity: bucketOf(rows), outputCapacity, ...wishes });
  }
}

function floats(slice: BufferSlice): Float32Array {
  const bytes = hostBytes(slice);
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}

function words(slice: BufferSlice): Uint32Array {
  const bytes = hostBytes(slice);
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}
