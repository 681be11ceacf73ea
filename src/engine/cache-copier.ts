/**
 * Copies blocks of the cache and recurrent states on the device. Few steps need any; the commands
 * are recorded anew for each that does.
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
  /** Rows that each state is divided into: sequences, then checkpoints. */
  readonly stateCount: number;
}

export class CacheCopier {
  readonly #gpu: Gpu;
  readonly #memory: CopiedMemory;
  #program: Program | undefined;

  constructor(gpu: Gpu, memory: CopiedMemory) {
    this.#gpu = gpu;
    this.#memory = memory;
  }

  /**
   * Submits the copies in front of the step that wants them; how many submissions that took. The
   * ones before must be complete.
   */
  submit({ blocks, states }: CacheCopies): number {
    if (blocks.length === 0 && states.length === 0) return 0;
    const { device, pipelines, timeline } = this.#gpu;
    const label = "copies of the cache";
    const program = this.#program?.reset() ?? new Program(device, pipelines, label);
    this.#program = program;
    const { keyCaches, valueCaches, blockCount, stateCount } = this.#memory;
    for (const copy of states) {
      for (const state of Object.values(this.#memory.states))
        part(program, state, stateCount, copy);
    }
    for (const copy of blocks) {
      for (const cache of [...keyCaches, ...valueCaches]) {
        if (cache !== undefined) part(program, cache, blockCount, copy);
      }
    }
    timeline.submit(program.seal().commands, label);
    return 1;
  }

  free(): void {
    this.#program?.free();
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
