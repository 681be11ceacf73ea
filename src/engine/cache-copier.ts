/**
 * Copies blocks of the cache and recurrent states on the device. Few steps need any; the commands
 * are recorded anew for each that does, but for single states: those go to and from the same spare
 * ones with every guess.
 */
import { invariant } from "../errors.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { Program } from "../vulkan/program.ts";
import type { Copy } from "./checkpoints.ts";
import type { CacheCopies } from "./paged-cache.ts";

export interface CopiedMemory {
  readonly keyCaches: readonly (BufferSlice | undefined)[];
  readonly valueCaches: readonly (BufferSlice | undefined)[];
  readonly states: Readonly<Record<string, BufferSlice>>;
  /** Blocks that each cache is divided into. */
  readonly blockCount: number;
  /** Rows that each state is divided into: sequences, then checkpoints, then spare ones. */
  readonly stateCount: number;
}

/** Programs for copies of one state. */
const keptMax = 64;

export class CacheCopier {
  readonly #gpu: Gpu;
  readonly #memory: CopiedMemory;
  readonly #hasStates: boolean;
  #program: Program | undefined;
  /** The last one of `#program`. */
  #submission = 0;
  /** By "from to". */
  readonly #kept = new Map<string, Program>();

  constructor(gpu: Gpu, memory: CopiedMemory) {
    this.#gpu = gpu;
    this.#memory = memory;
    this.#hasStates = Object.keys(memory.states).length > 0;
  }

  /** Submits the copies in front of the step that wants them; how many submissions that took. */
  submit(copies: CacheCopies): number {
    const { blocks } = copies;
    // A part of a hybrid may have none.
    const states = this.#hasStates ? copies.states : [];
    const [copy] = states;
    if (copy === undefined && blocks.length === 0) return 0;
    const { timeline } = this.#gpu;
    if (copy !== undefined && states.length === 1 && blocks.length === 0) {
      const kept = this.#keep(copy);
      if (kept !== undefined) {
        timeline.submit(kept.commands, kept.label);
        return 1;
      }
    }
    timeline.wait(this.#submission);
    const program = this.#program?.reset() ?? this.#create();
    this.#program = program;
    const { keyCaches, valueCaches, blockCount } = this.#memory;
    for (const state of states) this.#copyState(program, state);
    for (const block of blocks) {
      for (const cache of [...keyCaches, ...valueCaches]) {
        if (cache !== undefined) part(program, cache, blockCount, block);
      }
    }
    this.#submission = timeline.submit(program.seal().commands, program.label);
    return 1;
  }

  free(): void {
    this.#program?.free();
    for (const program of this.#kept.values()) program.free();
  }

  #keep(copy: Copy): Program | undefined {
    const key = `${copy.from} ${copy.to}`;
    const known = this.#kept.get(key);
    if (known !== undefined || this.#kept.size >= keptMax) return known;
    const program = this.#create();
    this.#copyState(program, copy);
    this.#kept.set(key, program.seal());
    return program;
  }

  #create(): Program {
    const { device, pipelines } = this.#gpu;
    return new Program(device, pipelines, "copies of the cache");
  }

  #copyState(program: Program, copy: Copy): void {
    const { states, stateCount } = this.#memory;
    for (const state of Object.values(states)) part(program, state, stateCount, copy);
  }
}

/** Copies one of the equal parts of a slice over another. */
function part(program: Program, slice: BufferSlice, count: number, { from, to }: Copy): void {
  const byteSize = slice.byteSize / count;
  invariant(Number.isInteger(byteSize), `${slice.byteSize} bytes in ${count} parts`);
  program.copy(
    subslice(slice, from * byteSize, byteSize),
    subslice(slice, to * byteSize, byteSize),
  );
}
