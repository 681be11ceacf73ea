/**
 * Guesses by looking up: what followed the last few tokens where they occurred before, in the
 * prompt or in the answer (Saxena 2023, "prompt lookup decoding"). Code that is edited, documents
 * that are quoted and lists with a pattern repeat themselves; where nothing does, it has no guess.
 */
import type { Drafter, Guess } from "./drafter.ts";

/** Fewer tokens in a row occur again by chance. */
const gramTokens = 3;
/** Of a match; longer ones say no more. */
const matchMax = 32;
/** Earlier places that are compared, the latest first. */
const placesMax = 8;
const bucketBits = 13;

export class NgramDrafter implements Drafter {
  /** By hash: the last position that such a gram stands in front of; -1 for none. */
  readonly #latest = new Int32Array(2 ** bucketBits).fill(-1);
  /** By position: the one before it with the same hash. */
  readonly #earlier: number[] = [];

  /** Between calls, tokens are only added. */
  guess(tokens: readonly number[], count: number): Guess | undefined {
    this.#index(tokens);
    if (tokens.length < gramTokens) return undefined;
    let [place, match] = [-1, gramTokens - 1];
    let candidate = this.#latest[hashBefore(tokens, tokens.length)] ?? -1;
    for (let i = 0; i < placesMax && candidate >= 0; i++) {
      const length = matchLength(tokens, candidate);
      if (length > match) [place, match] = [candidate, length];
      if (length === matchMax) break;
      candidate = this.#earlier[candidate] ?? -1;
    }
    if (place < 0) return undefined;
    // A text that repeats itself goes on doing so: its end is followed by the guess.
    const guess: number[] = [];
    for (let at = place; guess.length < count; at++) {
      guess.push(tokens[at] ?? guess[at - tokens.length] ?? 0);
    }
    return { tokens: guess, evidence: evidenceOf(match) };
  }

  /** All positions that a token is known of. */
  #index(tokens: readonly number[]): void {
    for (let at = this.#earlier.length; at < tokens.length; at++) {
      const hash = at < gramTokens ? -1 : hashBefore(tokens, at);
      this.#earlier.push(this.#latest[hash] ?? -1);
      if (hash >= 0) this.#latest[hash] = at;
    }
  }
}

function hashBefore(tokens: readonly number[], position: number): number {
  let hash = 0;
  for (let i = position - gramTokens; i < position; i++) {
    hash = Math.imul(hash ^ (tokens[i] ?? 0), 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  return hash >>> (32 - bucketBits);
}

/** Tokens in front of a position that are those at the end. */
function matchLength(tokens: readonly number[], position: number): number {
  let length = 0;
  const most = Math.min(matchMax, position);
  while (length < most && tokens[position - 1 - length] === tokens[tokens.length - 1 - length]) {
    length++;
  }
  return length;
}

/** 0 for 3 or 4 tokens, 1 up to 8, 2 up to 16, 3 for more. */
function evidenceOf(match: number): number {
  return Math.max(0, Math.ceil(Math.log2(match)) - 2);
}
