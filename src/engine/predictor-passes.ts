/**
 * Passes of the layers that guess further tokens, behind steps of the model itself. The first one
 * takes the rows of a step, each with the token that turned out to follow; each further one takes a
 * row a text, with the token that the pass before has guessed.
 */
import { invariant } from "../errors.ts";
import { greedySampling, sample, samplingBytes, writeSamplings } from "../kernels/sample.ts";
import {
  latestToken,
  stepBytes,
  writeBlockTable,
  writeStep,
  type StepRow,
} from "../kernels/step.ts";
import type { Model, Predictor } from "../model/model.ts";
import { hostBytes, subslice, type BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { MemoryGroup } from "../vulkan/memory.ts";
import { Program } from "../vulkan/program.ts";
import { draftedRowCounts, draftedRowsMax } from "./draft-rows.ts";
import type { EngineMemory } from "./memory.ts";
import type { TableChange } from "./paged-cache.ts";
import { bucketOf, type ProgramOptions } from "./programs.ts";

/** Tokens that are guessed ahead at most: each costs a reading of the head. */
export const depthMax = 3;

/** Changes of the block tables that may wait to be told. */
const unseenMax = 256;

export interface PredictorWork {
  /** The number of the memory of the step that it follows. */
  readonly flight: number;
  /** Those of the step, each with the token behind it. */
  readonly rows: readonly StepRow[];
  /** Behind which tokens are to be guessed, one for each text. */
  readonly outputRows: readonly number[];
  /** Tokens ahead. */
  readonly depth: number;
}

/** What the pass of one depth has for itself. */
interface DepthMemory {
  readonly step: BufferSlice;
  readonly tokens: BufferSlice;
  /** Changes of the block tables that its step buffer has not seen. */
  tables: TableChange[];
  submission: number;
}

export class PredictorPasses {
  readonly #gpu: Gpu;
  readonly #model: Model;
  readonly #predictor: Predictor;
  readonly #memory: EngineMemory;
  readonly #options: ProgramOptions;
  readonly #groups: readonly MemoryGroup[];
  readonly #depths: readonly DepthMemory[];
  readonly #samplings: BufferSlice;
  /** The token that was guessed last for each sequence. */
  readonly #latest: BufferSlice;
  /** What the head reads of each guess. */
  readonly #target: BufferSlice;
  readonly #programs = new Map<string, Program>();

  constructor(gpu: Gpu, model: Model, memory: EngineMemory, options: ProgramOptions) {
    const { predictor, config } = model;
    invariant(predictor !== undefined, `${config.name} has no layers that guess further tokens`);
    this.#gpu = gpu;
    this.#model = model;
    this.#predictor = predictor;
    this.#memory = memory;
    this.#options = options;
    const allocate = (use: "device" | "step" | "readback", sizes: readonly number[]) =>
      new MemoryGroup(
        gpu.device,
        use,
        sizes.map((byteSize, i) => ({ label: `guess ${i}`, byteSize })),
        "guesses of further tokens",
      );
    const perDepth = (byteSize: number) => Array.from({ length: depthMax }, () => byteSize);
    const own = [memory.latest.byteSize, draftedRowsMax * config.width * 4];
    const device = allocate("device", own);
    const written = [samplingBytes(draftedRowsMax), ...perDepth(stepBytes(memory.shape))];
    const steps = allocate("step", written);
    const read = allocate("readback", perDepth(draftedRowsMax * 4));
    this.#groups = [device, steps, read];
    [this.#latest, this.#target] = [present(device.slices[0]), present(device.slices[1])];
    this.#samplings = present(steps.slices[0]);
    this.#depths = read.slices.map((tokens, i) => ({
      ...{ step: present(steps.slices[i + 1]), tokens, tables: [], submission: 0 },
    }));
    const greedy = Array.from({ length: draftedRowsMax }, () => greedySampling);
    writeSamplings(hostBytes(this.#samplings), draftedRowsMax, greedy);
  }

  /** How many programs were recorded so far. */
  get programCount(): number {
    return this.#programs.size;
  }

  /** Records what guesses for one text will need: it should not wait for it then. */
  prepare(): void {
    for (const flight of this.#memory.flights.keys()) {
      for (const rows of [1, ...draftedRowCounts]) this.#programFor(0, flight, rows, 1);
      this.#programFor(0, flight, 1, 0);
    }
    for (let ahead = 1; ahead < depthMax; ahead++) this.#programFor(ahead, undefined, 1, 1);
  }

  /** What steps have changed in the block tables. */
  tell(tables: readonly TableChange[]): void {
    for (const own of this.#depths) {
      own.tables.push(...tables);
      // Where nobody guesses any more they would become ever more.
      if (own.tables.length > unseenMax) this.#writeTables(own);
    }
  }

  /** The tokens that are guessed to follow each output; waits for them if there are any. */
  run({ flight, rows, outputRows, depth }: PredictorWork): number[][] {
    this.#submit(0, flight, rows, outputRows);
    if (outputRows.length === 0) return [];
    const lasts = outputRows.flatMap((row) => rows[row] ?? []);
    for (let ahead = 1; ahead < depth; ahead++) {
      const next = lasts.map(({ position, sequence }) => ({
        ...{ token: latestToken, position: position + ahead, sequence },
      }));
      this.#submit(ahead, undefined, next, [...next.keys()]);
    }
    const passes = this.#depths.slice(0, depth);
    this.#gpu.timeline.wait(passes.at(-1)?.submission ?? 0);
    const tokens = passes.map((pass) => words(pass.tokens).slice(0, outputRows.length));
    return outputRows.map((_row, i) => tokens.map((guessed) => guessed[i] ?? 0));
  }

  free(): void {
    for (const program of this.#programs.values()) program.free();
    for (const group of this.#groups) group.free();
  }

  /** `flight`: of the step that it follows; undefined behind another guess. */
  #submit(
    ahead: number,
    flight: number | undefined,
    rows: readonly StepRow[],
    outputRows: readonly number[],
  ): void {
    const own = this.#depth(ahead);
    const program = this.#programFor(ahead, flight, rows.length, outputRows.length);
    this.#writeTables(own);
    writeStep(words(own.step), this.#memory.shape, rows, outputRows);
    own.submission = this.#gpu.timeline.submit(program.commands, program.label);
  }

  /** What a step buffer says must not change while an earlier pass reads it. */
  #writeTables(own: DepthMemory): void {
    this.#gpu.timeline.wait(own.submission);
    const step = words(own.step);
    for (const { slot, from, blocks } of own.tables) {
      writeBlockTable(step, this.#memory.shape, slot, blocks, from);
    }
    own.tables = [];
  }

  #depth(ahead: number): DepthMemory {
    const own = this.#depths[ahead];
    invariant(own !== undefined, `${ahead} tokens ahead`);
    return own;
  }

  #programFor(ahead: number, flight: number | undefined, rows: number, outputs: number): Program {
    const rowCapacity = bucketOf(rows);
    const outputCapacity = outputs === 0 ? 0 : bucketOf(outputs);
    const key = `${ahead} ${flight} ${rowCapacity} ${outputCapacity}`;
    const known = this.#programs.get(key);
    if (known !== undefined) return known;
    const source = flight === undefined ? this.#target : this.#memory.flights[flight]?.hidden;
    invariant(source !== undefined, `flight ${flight} keeps nothing of its rows`);
    const program = this.#record(this.#depth(ahead), source, rowCapacity, outputCapacity);
    this.#programs.set(key, program);
    return program;
  }

  #record(
    { step, tokens }: DepthMemory,
    source: BufferSlice,
    rowCapacity: number,
    outputCapacity: number,
  ): Program {
    const { device, pipelines } = this.#gpu;
    const { name, vocabularySize: vocabulary } = this.#model.config;
    const { logits, samplingScratch: scratch } = this.#memory;
    const { deterministic } = this.#options;
    const program = new Program(device, pipelines, `guesses behind ${rowCapacity} rows of ${name}`);
    const { tunings } = this.#options;
    const context = { program, pipelines, capabilities: device.capabilities, tunings };
    const written = subslice(logits, 0, outputCapacity * vocabulary * 4);
    const latest = this.#latest;
    this.#predictor.record(
      context,
      {
        ...{ ...this.#memory, step, latest, rowCapacity, outputCapacity, deterministic },
        logits: written,
      },
      { source, target: this.#target },
    );
    if (outputCapacity > 0) {
      const samplings = this.#samplings;
      const outputs = { logits: written, samplings, scratch, tokens, latest, step };
      sample(context, { ...outputs, outputCapacity, vocabulary });
    }
    return program.seal();
  }
}

function words(slice: BufferSlice): Uint32Array {
  const bytes = hostBytes(slice);
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
}

function present(slice: BufferSlice | undefined): BufferSlice {
  invariant(slice !== undefined, "a piece of memory is missing");
  return slice;
}
