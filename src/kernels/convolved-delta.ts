/** A recurrent layer between its products: the short convolution, then the gated delta rule. */
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { deltaTerms } from "./delta-terms.ts";
import { gatedDelta, type GatedDelta } from "./gated-delta.ts";
import type { KernelContext } from "./kernel.ts";
import { shortConv } from "./short-conv.ts";

export interface ConvolvedDelta extends Omit<GatedDelta, "convolution" | "terms"> {
  readonly convolution: {
    /** [channels, taps] */
    readonly weight: Vector;
    /** As `shortConv` keeps it. */
    readonly state: BufferSlice;
    /** [rowCapacity, channels]: scratch. */
    readonly result: BufferSlice;
  };
  /** [rowCapacity, heads, 4] floats: scratch. */
  readonly terms: BufferSlice;
  readonly deterministic: boolean;
}

/** Rows that repay a dispatch for what does not depend on the state. */
const manyRows = 64;

/** For one row in one dispatch. */
export function convolvedDelta(context: KernelContext, args: ConvolvedDelta): void {
  const { convolution, deterministic, terms, ...delta } = args;
  const { mixed: u, heads, keyHeads, width, step, rowCapacity, sequenceCapacity } = delta;
  if (rowCapacity === 1 && !deterministic) {
    gatedDelta(context, { ...delta, convolution });
    return;
  }
  const { result: y, ...rest } = convolution;
  const channels = (2 * keyHeads + heads) * width;
  shortConv(context, { ...rest, u, y, channels, step, rowCapacity, sequenceCapacity });
  if (rowCapacity < manyRows || deterministic) {
    gatedDelta(context, { ...delta, mixed: y });
    return;
  }
  deltaTerms(context, { ...delta, mixed: y, terms });
  gatedDelta(context, { ...delta, mixed: y, terms });
}
