/** A binary heap of numbers, smallest first, that keeps its memory between uses. */
export class MinHeap {
  #keys = new Float64Array(64);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
  }

  push(key: number): void {
    if (this.#length === this.#keys.length) this.#grow();
    const keys = this.#keys;
    let at = this.#length++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = keys[parent] as number;
      if (above <= key) break;
      keys[at] = above;
      at = parent;
    }
    keys[at] = key;
  }

  /** Removes and returns the smallest key; Infinity when there is none. */
  pop(): number {
    if (this.#length === 0) return Infinity;
    const keys = this.#keys;
    const smallest = keys[0] as number;
    const moved = keys[--this.#length] as number;
    const length = this.#length;
    let at = 0;
    for (let child = 1; child < length; child = 2 * at + 1) {
      if (child + 1 < length && (keys[child + 1] as number) < (keys[child] as number)) child++;
      const below = keys[child] as number;
      if (below >= moved) break;
      keys[at] = below;
      at = child;
    }
    keys[at] = moved;
    return smallest;
  }

  #grow(): void {
    const larger = new Float64Array(this.#keys.length * 2);
    larger.set(this.#keys);
    this.#keys = larger;
  }
}
