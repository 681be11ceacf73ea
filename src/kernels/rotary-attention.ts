/** Attention with what comes before it: norms and rotation of heads, and the write to the cache. */
import { attention, type Attention } from "./attention.ts";
import type { KernelContext } from "./kernel.ts";
import { ropeCache, type RotatedHeads } from "./rope-cache.ts";

export interface RotaryAttention extends Omit<Attention, "rope"> {
  readonly rope: Omit<RotatedHeads, "query">;
}

/** For one row in one dispatch; the rows of several may see each other's keys. */
export function rotaryAttention(context: KernelContext, args: RotaryAttention): void {
  const { rope, ...rest } = args;
  const { rowCapacity, deterministic, gated = false, headWidth } = rest;
  if (rowCapacity === 1 && !deterministic && rope.temperature === undefined) {
    attention(context, args);
    return;
  }
  const queryStride = gated ? 2 * headWidth : headWidth;
  ropeCache(context, { ...rest, ...rope, queryStride });
  attention(context, rest);
}
