/**
 * The strings of a metadata array copied into one block. Each string that an array is asked for
 * costs a view of its bytes, and vocabularies are looked at many times.
 */
import type { StringArray } from "../gguf/metadata.ts";

export interface PackedStrings {
  readonly count: number;
  /** All strings, one after the other, and perhaps unused room behind them. */
  readonly bytes: Uint8Array;
  /** Where each string begins, and behind them where the last one ends. */
  readonly starts: Uint32Array;
}

/** What tokens and merges need on average, so that the block seldom grows. */
const bytesPerString = 12;

export function packStrings(strings: StringArray): PackedStrings {
  const count = strings.length;
  const starts = new Uint32Array(count + 1);
  let bytes = new Uint8Array(Math.max(1024, count * bytesPerString));
  let at = 0;
  for (let index = 0; index < count; index++) {
    const string = strings.bytesAt(index);
    const length = string.length;
    if (at + length > bytes.length) {
      const larger = new Uint8Array(Math.max(at + length, bytes.length * 2));
      larger.set(bytes);
      bytes = larger;
    }
    // Most are shorter than what a call of `set` is worth.
    for (let i = 0; i < length; i++) bytes[at + i] = string[i] as number;
    at += length;
    starts[index + 1] = at;
  }
  return { count, bytes, starts };
}
