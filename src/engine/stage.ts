/**
 * A part of the model on its device: writes what changes from step to step and submits the recorded
 * program. It knows no other device; what comes from one and goes to one lies in host memory.
 */
import { invariant } from "../errors.ts";
import { canSample, writeSamplings, type OutputSampling } from "../kernels/sample.ts";
import { writeBlockTable, writeStep, type StepShape } from "../kernels/step.ts";
import type { Model } from "../model/model.ts";
import { hostBytes, type BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { CacheCopier } from "./cache-copier.ts";
import type { EngineMemory } from "./memory.ts";
import type { TableChange } from "./paged-cache.ts";
import { cacheBlockCount, type MemoryPlan } from "./plan.ts";
import { bucketOf, Programs, type ProgramOptions, type RecordedPass } from "./programs.ts";
import type { StepWork } from "./step-plan.ts";

/** What a step submitted here. */
export interface StageRun {
  readonly pass: RecordedPass;
  readonly submission: number;
  readonly submits: number;
}

/** What a step uses alone, as the host sees it. */
interface FlightView {
  readonly step: Uint32Array;
  readonly samplings: Uint8Array;
  readonly tokens: Uint32Array;
  readonly arrivals: readonly Carried[];
  readonly departures: readonly Carried[];
  /** Changes of the block tables that its step buffer has not seen. */
  tables: TableChange[];
  submission: number;
}

/** Activations on their way: as many rows as a step has, of `rowBytes` each. */
interface Carried {
  readonly bytes: Uint8Array;
  readonly rowBytes: number;
}

export class Stage {
  readonly gpu: Gpu;
  readonly flightCount: number;
  readonly #isLast: boolean;
  readonly #outputCapacity: number;
  readonly #vocabularySize: number;
  readonly #programs: Programs;
  readonly #copier: CacheCopier;
  readonly #shape: StepShape;
  readonly #flights: readonly FlightView[];
  readonly #logits: Float32Array;

  constructor(
    gpu: Gpu,
    model: Model,
    plan: MemoryPlan,
    memory: EngineMemory,
    options: ProgramOptions,
  ) {
    this.gpu = gpu;
    this.flightCount = memory.flights.length;
    this.#isLast = memory.layers.end === model.config.layerCount;
    this.#outputCapacity = plan.outputCapacity;
    this.#vocabularySize = model.config.vocabularySize;
    this.#programs = new Programs(gpu, model, memory, options);
    const { cacheTokens, sequenceCapacity, checkpointCapacity = 0 } = plan;
    const blockCount = cacheBlockCount(cacheTokens);
    const stateCount = sequenceCapacity + checkpointCapacity;
    this.#copier = new CacheCopier(gpu, { ...memory, blockCount, stateCount });
    this.#shape = memory.shape;
    const carriedIn = (slices: Readonly<Record<string, BufferSlice>>) =>
      Object.entries(slices).map(([name, slice]) => ({
        bytes: hostBytes(slice),
        rowBytes: (model.scratch[name] ?? 0) * 4,
      }));
    this.#flights = memory.flights.map(({ step, samplings, tokens, arrivals, departures }) => ({
      step: words(step),
      samplings: hostBytes(samplings),
      tokens: words(tokens),
      arrivals: carriedIn(arrivals),
      departures: carriedIn(departures),
      tables: [],
      submission: 0,
    }));
    const logits = hostBytes(memory.readback);
    this.#logits = new Float32Array(logits.buffer, logits.byteOffset, logits.byteLength / 4);
  }

  /** Whether the device can choose tokens of this vocabulary. */
  get canSample(): boolean {
    return canSample(this.#vocabularySize);
  }

  /**
   * Submits its part of a step into the `index`-th flight memory. Steps come in the order of their
   * plans. With `samplings`, one for each output, the last stage chooses the tokens.
   */
  submit(
    index: number,
    { copies, tables, rows, outputRows }: StepWork,
    samplings: readonly OutputSampling[] | undefined,
  ): StageRun {
    const { timeline } = this.gpu;
    const view = this.#view(index);
    for (const { tables: unseen } of this.#flights) unseen.push(...tables);
    const samples = samplings !== undefined && this.#isLast;
    const pass = this.#passFor(index, rows.length, this.#isLast ? outputRows.length : 0, samples);
    timeline.wait(view.submission);
    if (copies.blocks.length + copies.states.length > 0) timeline.wait(timeline.submitted);
    const copySubmits = this.#copier.submit(copies);
    for (const { slot, from, blocks } of view.tables) {
      writeBlockTable(view.step, this.#shape, slot, blocks, from);
    }
    view.tables = [];
    writeStep(view.step, this.#shape, rows, outputRows);
    if (samples) writeSamplings(view.samplings, pass.outputCapacity, samplings);
    view.submission = timeline.submit(pass.program.commands, pass.program.label);
    return { pass, submission: view.submission, submits: 1 + copySubmits };
  }

  wait({ submission }: StageRun): void {
    this.gpu.timeline.wait(submission);
  }

  /** Hands what a step that is done here has made of its rows to the next stage. */
  handOver(next: Stage, index: number, rowCount: number): void {
    const { arrivals } = next.#view(index);
    for (const [i, { bytes, rowBytes }] of this.#view(index).departures.entries()) {
      arrivals[i]?.bytes.set(bytes.subarray(0, rowCount * rowBytes));
    }
  }

  /** The tokens that the device chose in a step that is done. */
  tokensOf(index: number, outputCount: number): Uint32Array {
    return this.#view(index).tokens.subarray(0, outputCount);
  }

  /** The logits of the last step that wanted them: [outputCount, vocabularySize]. */
  logitsOf(outputCount: number): Float32Array {
    return this.#logits.subarray(0, outputCount * this.#vocabularySize);
  }

  free(): void {
    this.#programs.free();
    this.#copier.free();
  }

  #view(index: number): FlightView {
    const view = this.#flights[index];
    invariant(view !== undefined, `flight ${index}`);
    return view;
  }

  #passFor(flight: number, rows: number, outputs: number, samples: boolean): RecordedPass {
    const outputCapacity =
      outputs <= 1 ? outputs : Math.min(bucketOf(outputs), this.#outputCapacity);
    return this.#programs.get({ flight, rowCapacity: bucketOf(rows), outputCapacity, samples });
  }
}

function words(slice: BufferSlice): Uint32Array {
  const bytes = hostBytes(slice);
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}
