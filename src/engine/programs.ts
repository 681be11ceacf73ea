/** The recorded forward passes of a model: one for each bucket of rows, made when first needed. */
import { invariant } from "../errors.ts";
import type { Model } from "../model/model.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { Profiler, ProgramTimer } from "../vulkan/profiler.ts";
import { Program } from "../vulkan/program.ts";

/** What all programs of an engine share. */
export interface PassMemory {
  readonly step: BufferSlice;
  readonly scratch: Readonly<Record<string, BufferSlice>>;
  readonly workspace: BufferSlice;
  readonly keyCaches: readonly BufferSlice[];
  readonly valueCaches: readonly BufferSlice[];
  readonly states: Readonly<Record<string, BufferSlice>>;
  readonly tables: Readonly<Record<string, BufferSlice>>;
  readonly logits: BufferSlice;
  readonly attentionParts: BufferSlice;
  /** Where the host reads the logits. */
  readonly readback: BufferSlice;
  readonly contextTokens: number;
  readonly sequenceCapacity: number;
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
  get(rowCapacity: number, outputCapacity: number): RecordedPass {
    const key = `${rowCapacity} ${outputCapacity}`;
    const known = this.#recorded.get(key);
    if (known !== undefined) return known;
    const pass = this.#record(rowCapacity, outputCapacity);
    this.#recorded.set(key, pass);
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

  #record(rowCapacity: number, outputCapacity: number): RecordedPass {
    const { device, pipelines } = this.#gpu;
    const { deterministic, profile } = this.#options;
    const { logits, readback, ...memory } = this.#memory;
    const timer = new ProgramTimer(device);
    const profiler = profile ? new Profiler(device) : undefined;
    const label = `${rowCapacity} rows of ${this.#model.config.name}`;
    const program = new Program(device, pipelines, label, { timer, ...(profiler && { profiler }) });
    const logitsBytes = outputCapacity * this.#model.config.vocabularySize * 4;
    invariant(logitsBytes <= logits.byteSize, `logits of ${outputCapacity} rows`);
    const written = { ...logits, byteSize: logitsBytes };
    this.#model.record(
      { program, pipelines, capabilities: device.capabilities },
      {
        ...memory,
        rowCapacity,
        outputCapacity,
        deterministic,
        logits: written,
      },
    );
    if (outputCapacity > 0) program.copy(written, { ...readback, byteSize: logitsBytes });
    return { program: program.seal(), rowCapacity, outputCapacity, timer, profiler };
  }
}
