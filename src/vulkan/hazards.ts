/**
 * Which dispatches must wait for which: barriers follow from the declared reads and writes.
 * Independent dispatches share an interval between two barriers.
 */
import type { BufferSlice } from "./buffer.ts";

export interface Accesses {
  readonly reads: readonly BufferSlice[];
  readonly writes: readonly BufferSlice[];
}

export class HazardTracker {
  #reads: BufferSlice[] = [];
  #writes: BufferSlice[] = [];

  /** Whether a barrier must come before these accesses. */
  conflicts({ reads, writes }: Accesses): boolean {
    return (
      overlapsAny(reads, this.#writes) ||
      overlapsAny(writes, this.#writes) ||
      overlapsAny(writes, this.#reads)
    );
  }

  add({ reads, writes }: Accesses): void {
    this.#reads.push(...reads);
    this.#writes.push(...writes);
  }

  /** After a barrier nothing is pending. */
  clear(): void {
    this.#reads = [];
    this.#writes = [];
  }
}

function overlapsAny(slices: readonly BufferSlice[], others: readonly BufferSlice[]): boolean {
  return slices.some((slice) => others.some((other) => overlap(slice, other)));
}

function overlap(a: BufferSlice, b: BufferSlice): boolean {
  return (
    a.buffer === b.buffer && a.offset < b.offset + b.byteSize && b.offset < a.offset + a.byteSize
  );
}
