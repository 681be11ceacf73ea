/** Random numbers that are the same in every run: xorshift32. */

export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    // Zero is the one state that xorshift never leaves; the multiplier parts neighbouring seeds.
    this.#state = Math.imul(seed, 0x9e3779b9) >>> 0 || 1;
    for (let i = 0; i < 8; i++) this.u32();
  }

  u32(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x >>> 0;
    return this.#state;
  }

  /** A whole number from 0 up to but not `limit`. */
  below(limit: number): number {
    return Math.floor((this.u32() / 2 ** 32) * limit);
  }

  /** From `low` up to but not `high`. */
  between(low: number, high: number): number {
    return low + (this.u32() / 2 ** 32) * (high - low);
  }

  /** About normal, with mean 0 and the given deviation: the sum of four uniform numbers. */
  normal(deviation = 1): number {
    let sum = 0;
    for (let i = 0; i < 4; i++) sum += this.between(-1, 1);
    return sum * Math.sqrt(3 / 4) * deviation;
  }

  floats(count: number, deviation = 1): Float32Array {
    return Float32Array.from({ length: count }, () => this.normal(deviation));
  }

  bytes(count: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from({ length: count }, () => this.u32() >>> 24);
  }
}
