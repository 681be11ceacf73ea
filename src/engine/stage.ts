/**
 * A part of the model on its device: writes what changes from step to step and submits the recorded
 * program. It knows no other device; what comes from one and goes to one lies in host memory.
 */
import { invariant } from "../errors.ts";
import { writeSamplings, type OutputSampling } from "../kernels/sample.ts";
import { writeBlockTable, writeStep, type StepShape } from "../kernels/step.ts";
import type { Tunings } from "../kernels/tunings.ts";
import type { Model } from "../model/model.ts";
import { hostBytes, type BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { CacheCopier } from "./cache-copier.ts";
import type { EngineMemory } from "./memory.ts";
import type { TableChange } from "./paged-cache.ts";
import { cacheBlockCount, type MemoryPlan } from "./plan.ts";
import {
  bucketOf,
  Programs,
  type PassKey,
  type ProgramOptions,
  type RecordedPass,
} from "./programs.ts";
import { stateCount } from "./state-plan.ts";
import type { StepWork } from "./step-plan.ts";

/** What a step submitted here. */
export interface StageRun {
  readonly pass: RecordedPass;
  readonly submission: number;
  readonly submits: number;
  /** Its program had to be recorded. */
  readonly isNew: boolean;
}

/** What the host wants of a step, from the last stage. */
export interface StageWishes {
  /** One for each output: the device chooses the tokens. */
  readonly samplings: readonly OutputSampling[] | undefined;
  /** The hidden states of its rows. */
  readonly hidden: boolean;
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
  readonly memory: EngineMemory;
  readonly flightCount: number;
  readonly tunings: Tunings | undefined;
  readonly #isLast: boolean;
  readonly #outputCapacity: number;
  readonly #vocabularySize: number;
  readonly #programs: Programs;
  readonly #copier: CacheCopier;
  readonly #shape: StepShape;
  readonly #flights: readonly FlightView[];
  readonly #width: number;
  readonly #logits: Float32Array;
  readonly #hidden: Float32Array;

  constructor(
    gpu: Gpu,
    model: Model,
    plan: MemoryPlan,
    memory: EngineMemory,
    options: ProgramOptions,
  ) {
    this.gpu = gpu;
    this.memory = memory;
    this.flightCount = memory.flights.length;
    this.tunings = options.tunings;
    this.#isLast = memory.layers.end === model.config.layerCount;
    this.#outputCapacity = plan.outputCapacity;
    this.#vocabularySize = model.config.vocabularySize;
    this.#programs = new Programs(gpu, model, memory, options);
    this.#width = model.config.width;
    const blockCount = cacheBlockCount(plan.cacheTokens);
    this.#copier = new CacheCopier(gpu, { ...memory, blockCount, stateCount: stateCount(plan) });
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
    this.#logits = floats(memory.readback);
    this.#hidden = floats(memory.hiddenReadback);
  }

  /** Records what steps of so many rows, all of them sampled, will need. */
  prepare(rows: number): void {
    for (const index of this.#flights.keys()) {
      this.#passFor(index, rows, rows, { samples: this.#isLast, hidden: false });
    }
  }

  /** Records one program that a step of one row needs. */
  prepareOne(): void {
    this.#passFor(0, 1, 1, { samples: this.#isLast, hidden: false });
  }

  /** Forgets what was recorded: kernels are laid out otherwise now. */
  renew(): void {
    this.#programs.free();
  }

  /** What has changed in the block tables. */
  tell(tables: readonly TableChange[]): void {
    for (const { tables: unseen } of this.#flights) unseen.push(...tables);
  }

  /**
   * Submits its part of a step into the `index`-th flight memory. Steps come in the order of their
   * plans.
   */
  submit(
    index: number,
    { copies, tables, rows, outputRows }: StepWork,
    { samplings, hidden }: StageWishes,
  ): StageRun {
    const { timeline } = this.gpu;
    const view = this.#view(index);
    this.tell(tables);
    const knownCount = this.#programs.count;
    const wishes = { samples: this.#isLast && samplings !== undefined, hidden };
    const pass = this.#passFor(index, rows.length, outputRows.length, wishes);
    timeline.wait(view.submission);
    const copySubmits = this.#copier.submit(copies);
    for (const { slot, from, blocks } of view.tables) {
      writeBlockTable(view.step, this.#shape, slot, blocks, from);
    }
    view.tables = [];
    writeStep(view.step, this.#shape, rows, outputRows);
    if (this.#isLast && samplings !== undefined) {
      writeSamplings(view.samplings, pass.outputCapacity, samplings);
    }
    view.submission = timeline.submit(pass.program.commands, pass.program.label);
    const isNew = this.#programs.count > knownCount;
    return { pass, submission: view.submission, submits: 1 + copySubmits, isNew };
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

  /** The hidden states of the last step that wanted them: [rowCount, width]. */
  hiddenOf(rowCount: number): Float32Array {
    return this.#hidden.subarray(0, rowCount * this.#width);
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

  /** Outputs are the last stage's, and so is what else is wished for. */
  #passFor(
    flight: number,
    rows: number,
    outputs: number,
    { samples, hidden }: Pick<PassKey, "samples" | "hidden">,
  ): RecordedPass {
    const wanted = this.#isLast ? outputs : 0;
    return this.#programs.get({
      flight,
      rowCapacity: bucketOf(rows),
      outputCapacity: wanted <= 1 ? wanted : Math.min(bucketOf(wanted), this.#outputCapacity),
      samples,
      hidden: this.#isLast && hidden,
    });
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
