/** From hidden states, as steps make them, to one vector of length 1 for a text. */
import { invariant } from "../errors.ts";
import type { Pooling } from "../model/config.ts";

export class EmbeddingPool {
  readonly #pooling: Pooling;
  readonly #sum: Float64Array;
  /** Positions that were taken in; the next one that counts. */
  #length = 0;

  constructor(pooling: Pooling, width: number) {
    this.#pooling = pooling;
    this.#sum = new Float64Array(width);
  }

  /** Rows from a position on: [rows, width]. Positions that were there before are passed over. */
  add(position: number, rows: Float32Array): void {
    const width = this.#sum.length;
    const end = position + rows.length / width;
    for (let at = Math.max(position, this.#length); at < end; at++) {
      this.#take(at, rows.subarray((at - position) * width, (at - position + 1) * width));
    }
    this.#length = Math.max(this.#length, end);
  }

  /** The direction of what was pooled; the first `dimensions` of it, again of length 1. */
  vector(dimensions: number = this.#sum.length): Float32Array {
    invariant(this.#length > 0, "an embedding of nothing");
    const kept = this.#sum.subarray(0, dimensions);
    const length = Math.sqrt(kept.reduce((sum, value) => sum + value * value, 0));
    return Float32Array.from(kept, (value) => (length === 0 ? 0 : value / length));
  }

  #take(position: number, row: Float32Array): void {
    if (this.#pooling === "first" && position > 0) return;
    if (this.#pooling === "last") this.#sum.fill(0);
    // A mean has the direction of the sum.
    for (let i = 0; i < row.length; i++) this.#sum[i] = (this.#sum[i] ?? 0) + (row[i] ?? 0);
  }
}
