/** The recorded forward passes of a model: one for each bucket of rows, made when first needed. */
import { invariant } from "../errors.ts";
import type { KvTypes } from "../kernels/kv-type.ts";
import { sample } from "../kernels/sample.ts";
import type { Model } from "../model/model.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { Profiler, ProgramTimer } from "../vulkan/profiler.ts";
import { Program } from "../vulkan/program.ts";

/** Steps that are under way at the same time, at most. */
export const stepsInFlight = 2;

/** What a step under way has for itself. */
export interface FlightMemory {
  readonly step: BufferSlice;
  /** How its outputs are to be sampled. */
  readonly samplings: BufferSlice;
  /** Where the host reads the tokens that the device chose. */
  readonly tokens: BufferSlice;
}

/** What all programs of an engine share. */
export interface PassMemory {
  readonly flights: readonly FlightMemory[];
  /** The token that the device chose last for each sequence. */
  readonly latest: BufferSlice;
  readonly samplingScratch: BufferSlice;
  readonly scratch: Readonly<Record<string, BufferSlice>>;
  readonly workspace: BufferSlice;
  readonly keyCaches: readonly BufferSlice[];
  readonly valueCaches: readonly BufferSlice[];
  readonly kvTypes: KvTypes;
  readonly states: Readonly<Record<string, BufferSlice>>;
  readonly tables: Readonly<Record<string, BufferSlice>>;
  readonly logits: BufferSlice;
  readonly attentionParts: BufferSlice;
  /** Where the host reads the logits. */
  readonly readback: BufferSlice;
  readonly contextTokens: number;
  readonly sequenceCapacity: number;
}

/** Which of the recorded passes a step wants. */
export interface PassKey {
  /** The number of its flight memory. */
  readonly flight: number;
  readonly rowCapacity: number;
  readonly outputCapacity: number;
  /** The device chooses the tokens; else the logits are the host's to read. */
  readonly samples: boolean;
}

export interface RecordedPass {
  readonly program: Program;
  readonly rowCapacity: number;
  readonly outputCapacity: number;
  readonly timer: ProgramTimer;
  readonly profiler: Profiler | undefined;
}

export interface ProgramOptions {
  readonly deterministic: boolean;
  /** Time each dispatch; every one then stands alone between barriers. */
  readonly profile: boolean;
}

/** Rows are rounded up to a power of two. */
export function bucketOf(rowCount: number): number {
  return 2 ** Math.ceil(Math.log2(rowCount));
}

export class Programs {
  readonly #gpu: Gpu;
  readonly #model: Model;
  readonly #memory: PassMemory;
  readonly #options: ProgramOptions;
  readonly #recorded = new Map<string, RecordedPass>();

  constructor(gpu: Gpu, model: Model, memory: PassMemory, options: ProgramOptions) {
    this.#gpu = gpu;
    this.#model = model;
    this.#memory = memory;
    this.#options = options;
  }

  /** The pass for up to `rowCapacity` rows, of which up to `outputCapacity` give logits. */
  get(key: PassKey): RecordedPass {
    const { flight, rowCapacity, outputCapacity, samples } = key;
    const name = `${flight} ${rowCapacity} ${outputCapacity} ${samples}`;
    const known = this.#recorded.get(name);
    if (known !== undefined) return known;
    const pass = this.#record(key);
    this.#recorded.set(name, pass);
    return pass;
  }

  /** All that were recorded so far. */
  all(): RecordedPass[] {
    return [...this.#recorded.values()];
  }

  free(): void {
    for (const { program, timer, profiler } of this.#recorded.values()) {
      program.free();
      timer.free();
      profiler?.free();
    }
    this.#recorded.clear();
  }

  #record({ flight, rowCapacity, outputCapacity, samples }: PassKey): RecordedPass {
    const { device, pipelines } = this.#gpu;
    const { deterministic, profile } = this.#options;
    const { logits, readback, flights, samplingScratch: scratch, ...memory } = this.#memory;
    const own = flights[flight];
    invariant(own !== undefined, `flight ${flight}`);
    const timer = new ProgramTimer(device);
    const profiler = profile ? new Profiler(device) : undefined;
    const label = `${rowCapacity} rows of ${this.#model.config.name}`;
    const program = new Program(device, pipelines, label, { timer, ...(profiler && { profiler }) });
    const logitsBytes = outputCapacity * this.#model.config.vocabularySize * 4;
    invariant(logitsBytes <= logits.byteSize, `logits of ${outputCapacity} rows`);
    const written = { ...logits, byteSize: logitsBytes };
    const context = { program, pipelines, capabilities: device.capabilities };
    this.#model.record(context, {
      ...memory,
      step: own.step,
      rowCapacity,
      outputCapacity,
      deterministic,
      logits: written,
    });
    if (samples) {
      const { vocabularySize: vocabulary } = this.#model.config;
      const { latest } = memory;
      sample(context, { logits: written, ...own, scratch, latest, outputCapacity, vocabulary });
    } else if (outputCapacity > 0) program.copy(written, { ...readback, byteSize: logitsBytes });
    return { program: program.seal(), rowCapacity, outputCapacity, timer, profiler };
  }
}
