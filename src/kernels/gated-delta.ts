/** The gated delta rule: a recurrent layer's state along the rows of each sequence. */
import { invariant } from "../errors.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, updates, writes, type KernelContext } from "./kernel.ts";
import { teamOf } from "./reduction.ts";
import { convTapsMax } from "./short-conv.ts";

export const gatedDeltaKernel = defineKernel("gated_delta", {
  mixed: reads,
  beta: reads,
  alpha: reads,
  decay: reads,
  offset: reads,
  state: updates,
  result: writes,
  weight: reads,
  ring: updates,
  terms: reads,
  step: reads,
  heads: u32,
  keyHeads: u32,
  channels: u32,
  epsilon: f32,
});

/**
 * Invocations that share a column of the state: 16 floats each at a width of 128, which leaves room
 * for the next row's keys and queries in registers.
 */
const columnLanes = 8;

const workgroupMax = 256;

/** Columns are shared out in quads, and kept in registers. */
export function isDeltaWidth(width: number): boolean {
  return width % (4 * columnLanes) === 0 && width <= 256;
}

export interface GatedDelta {
  /** [rowCapacity, queries of keyHeads | keys of keyHeads | values of heads, width] */
  readonly mixed: BufferSlice;
  /** [rowCapacity, heads], before the sigmoid. */
  readonly beta: BufferSlice;
  /** [rowCapacity, heads], before the softplus. */
  readonly alpha: BufferSlice;
  /** [heads], negative: the factor on softplus(alpha + offset) in the exponent of the decay. */
  readonly decay: Vector;
  /** [heads] */
  readonly offset: Vector;
  /** [sequenceCapacity, heads, width (values), width (keys)] floats, updated. */
  readonly state: BufferSlice;
  /** [rowCapacity, heads, width], written. */
  readonly result: BufferSlice;
  readonly heads: number;
  readonly keyHeads: number;
  readonly width: number;
  /** The least length that queries and keys are divided by. */
  readonly epsilon: number;
  /**
   * Heads that share a key head are neighbours, and `beta` and `alpha` are one product:
   * [rowCapacity, keyHeads, betas | alphas]. Else head h has key head h modulo keyHeads.
   */
  readonly grouped?: boolean;
  /** From `deltaTerms`, which has prepared `mixed`: for many rows. */
  readonly terms?: BufferSlice | undefined;
  /** For one row: `mixed` comes as its product left it, and is convolved first (`shortConv`). */
  readonly convolution?: { readonly weight: Vector; readonly state: BufferSlice } | undefined;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly sequenceCapacity: number;
}

/** Bytes of state that a sequence needs. */
export function gatedDeltaStateBytes(heads: number, width: number): number {
  return heads * width * width * 4;
}

export function gatedDelta(context: KernelContext, delta: GatedDelta): void {
  const { mixed, beta, alpha, decay, offset, state, result, step, width } = delta;
  const { heads, keyHeads, grouped = false, convolution, terms, epsilon } = delta;
  const { rowCapacity, sequenceCapacity } = delta;
  const channels = (2 * keyHeads + heads) * width;
  const taps = (convolution?.weight.length ?? 2 * channels) / channels;
  invariant(isDeltaWidth(width), `gatedDelta: width ${width}`);
  invariant(heads % keyHeads === 0, `gatedDelta: ${heads} heads, ${keyHeads} key heads`);
  invariant(
    state.byteSize >= sequenceCapacity * gatedDeltaStateBytes(heads, width),
    "gatedDelta: the state is too small",
  );
  invariant(convolution === undefined || rowCapacity === 1, `gatedDelta: ${rowCapacity} rows`);
  invariant(Number.isInteger(taps) && taps <= convTapsMax, `gatedDelta: ${taps} taps`);
  const { reduction, lanes, subgroupSize } = teamOf(context);
  const shared = Math.min(columnLanes, lanes);
  // What precedes the rule is done by every workgroup, so it should have many columns.
  const workgroup =
    convolution === undefined ? lanes : Math.max(lanes, Math.min(width * shared, workgroupMax));
  launch(context, gatedDeltaKernel, {
    shader: `gated_delta.${reduction}`,
    constants: [
      workgroup,
      width,
      shared,
      grouped ? 1 : 0,
      convolution === undefined ? 0 : 1,
      taps - 1,
      terms === undefined ? 0 : 1,
    ],
    subgroupSize,
    parameters: {
      ...{ mixed, beta, alpha, state, result, step, heads, keyHeads, channels, epsilon },
      decay: decay.data,
      offset: offset.data,
      ...(terms && { terms }),
      ...(convolution && { weight: convolution.weight.data, ring: convolution.state }),
    },
    groups: [heads, (width * shared) / workgroup, Math.min(rowCapacity, sequenceCapacity)],
    label: "gated delta rule",
  });
}
