/**
 * The recorded forward passes of a model, or of its part on one device: one for each bucket of
 * rows, made when first needed.
 */
import { invariant } from "../errors.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import type { KvTypes } from "../kernels/kv-type.ts";
import { sample } from "../kernels/sample.ts";
import type { Tunings } from "../kernels/tunings.ts";
import { scratchSlice, type LayerRange, type Model } from "../model/model.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { Profiler, ProgramTimer } from "../vulkan/profiler.ts";
import { Program } from "../vulkan/program.ts";
import { layersText } from "./shortage.ts";

/** Steps under way at most: two, so that the host is never waited for, or one a device. */
export function flightCountOf(stageCount: number): number {
  return Math.max(2, stageCount);
}

/** What a step under way has for itself. */
export interface FlightMemory {
  readonly step: BufferSlice;
  /** How its outputs are to be sampled. */
  readonly samplings: BufferSlice;
  /** Where the host reads the tokens that the device chose. */
  readonly tokens: BufferSlice;
  /** What the head reads of each row, if somebody guesses from it. */
  readonly hidden?: BufferSlice | undefined;
  /** What the device in front has made of the rows, by its name among the activations. */
  readonly arrivals: Readonly<Record<string, BufferSlice>>;
  /** What the next device is to take up. */
  readonly departures: Readonly<Record<string, BufferSlice>>;
}

/** What all programs of an engine share. */
export interface PassMemory {
  readonly layers: LayerRange;
  readonly flights: readonly FlightMemory[];
  /** The token that the device chose last for each sequence. */
  readonly latest: BufferSlice;
  readonly samplingScratch: BufferSlice;
  readonly scratch: Readonly<Record<string, BufferSlice>>;
  readonly workspace: BufferSlice;
  readonly keyCaches: readonly (BufferSlice | undefined)[];
  readonly valueCaches: readonly (BufferSlice | undefined)[];
  readonly kvTypes: KvTypes;
  readonly states: Readonly<Record<string, BufferSlice>>;
  readonly tables: Readonly<Record<string, BufferSlice>>;
  readonly logits: BufferSlice;
  readonly attentionParts: BufferSlice;
  /** Where the host reads the logits. */
  readonly readback: BufferSlice;
  /** Where the host reads hidden states: [rowCapacity, width] of the largest step. */
  readonly hiddenReadback: BufferSlice;
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
  /** The hidden states of all rows are the host's to read. */
  readonly hidden: boolean;
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
  /** Measured layouts of kernels. */
  readonly tunings?: Tunings | undefined;
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
    const { flight, rowCapacity, outputCapacity, samples, hidden } = key;
    const name = `${flight} ${rowCapacity} ${outputCapacity} ${samples} ${hidden}`;
    const known = this.#recorded.get(name);
    if (known !== undefined) return known;
    const pass = this.#record(key);
    this.#recorded.set(name, pass);
    return pass;
  }

  /** How many were recorded so far. */
  get count(): number {
    return this.#recorded.size;
  }

  free(): void {
    for (const { program, timer, profiler } of this.#recorded.values()) {
      program.free();
      timer.free();
      profiler?.free();
    }
    this.#recorded.clear();
  }

  #record(key: PassKey): RecordedPass {
    const { flight, rowCapacity, outputCapacity, samples } = key;
    const { device, pipelines } = this.#gpu;
    const { logits, readback, flights, samplingScratch: scratch, latest } = this.#memory;
    const own = flights[flight];
    invariant(own !== undefined, `flight ${flight}`);
    const timer = new ProgramTimer(device);
    const profiler = this.#options.profile ? new Profiler(device) : undefined;
    const label = `${rowCapacity} rows of ${this.#label()}`;
    const program = new Program(device, pipelines, label, { timer, ...(profiler && { profiler }) });
    const { vocabularySize: vocabulary } = this.#model.config;
    const logitsBytes = outputCapacity * vocabulary * 4;
    invariant(logitsBytes <= logits.byteSize, `logits of ${outputCapacity} rows`);
    const written = { ...logits, byteSize: logitsBytes };
    const { tunings } = this.#options;
    const context = { program, pipelines, capabilities: device.capabilities, tunings };
    this.#recordLayers(context, own, { ...key, logits: written });
    if (samples) {
      sample(context, { logits: written, ...own, scratch, latest, outputCapacity, vocabulary });
    } else if (outputCapacity > 0) program.copy(written, { ...readback, byteSize: logitsBytes });
    return { program: program.seal(), rowCapacity, outputCapacity, timer, profiler };
  }

  /** The model, or its part between what arrives and what departs. */
  #recordLayers(
    context: KernelContext,
    own: FlightMemory,
    { rowCapacity, outputCapacity, hidden, logits }: PassKey & { logits: BufferSlice },
  ): void {
    const { program } = context;
    const { flights: _flights, hiddenReadback, ...memory } = this.#memory;
    const hiddenBytes = rowCapacity * this.#model.config.width * 4;
    const pass = {
      ...memory,
      ...{ step: own.step, hidden: own.hidden, rowCapacity, outputCapacity, logits },
      deterministic: this.#options.deterministic,
      hiddenReadback: hidden ? subslice(hiddenReadback, 0, hiddenBytes) : undefined,
    };
    const carried = (name: string) =>
      subslice(scratchSlice(pass, name), 0, rowCapacity * this.#rowBytes(name));
    for (const [name, arrival] of Object.entries(own.arrivals)) {
      const target = carried(name);
      program.copy(subslice(arrival, 0, target.byteSize), target);
    }
    this.#model.record(context, pass);
    for (const [name, departure] of Object.entries(own.departures)) {
      const source = carried(name);
      program.copy(source, subslice(departure, 0, source.byteSize));
    }
  }

  /** What a device that is lost was at. */
  #label(): string {
    const { name, layerCount } = this.#model.config;
    const { layers } = this.#memory;
    if (layers.end - layers.first === layerCount) return name;
    return `${name}, ${layersText(layers)}, on ${this.#gpu.device.capabilities.name}`;
  }

  #rowBytes(name: string): number {
    return (this.#model.scratch[name] ?? 0) * 4;
  }
}
