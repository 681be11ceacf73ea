/** Which tokens may come next, as a grammar has it. */

export interface TokenMask {
  /** A bit a token, 32 to a word, lowest first. */
  readonly allowed: Int32Array;
  /** The token that was chosen; `allowed` is about the next one when this is done. */
  accept(token: number): Promise<void>;
  close(): void;
}

/** Whether no token spells what is wanted next. */
export function isDeadEnd({ allowed }: TokenMask): boolean {
  return allowed.every((word) => word === 0);
}

/** The logits with all that is not allowed out of reach. */
export function masked(logits: Float32Array, { allowed }: TokenMask): Float32Array {
  const result = new Float32Array(logits.length).fill(Number.NEGATIVE_INFINITY);
  for (let token = 0; token < logits.length; token++) {
    if (((allowed[token >> 5] ?? 0) >> (token & 31)) & 1) result[token] = logits[token] ?? 0;
  }
  return result;
}
