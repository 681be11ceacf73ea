/** The gated delta rule: a recurrent layer's state along the rows of each sequence. */
import { invariant } from "../errors.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, updates, writes, type KernelContext } from "./kernel.ts";
import { teamOf } from "./reduction.ts";

export const gatedDeltaKernel = defineKernel("gated_delta", {
  mixed: reads,
  beta: reads,
  alpha: reads,
  decay: reads,
  offset: reads,
  state: updates,
  result: writes,
  step: reads,
  heads: u32,
  keyHeads: u32,
  epsilon: f32,
});

/**
 * Invocations that share a column of the state: 16 floats each at a width of 128, which leaves room
 * for the next row's keys and queries in registers.
 */
const columnLanes = 8;

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
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly sequenceCapacity: number;
}

/** Bytes of state that a sequence needs. */
export function gatedDeltaStateBytes(heads: number, width: number): number {
  return heads * width * width * 4;
}

export function gatedDelta(context: KernelContext, delta: GatedDelta): void {
  const { rowCapacity, sequenceCapacity, decay, offset, width, grouped = false, ...rest } = delta;
  const { heads, keyHeads, state } = rest;
  invariant(isDeltaWidth(width), `gatedDelta: width ${width}`);
  invariant(heads % keyHeads === 0, `gatedDelta: ${heads} heads, ${keyHeads} key heads`);
  invariant(
    state.byteSize >= sequenceCapacity * gatedDeltaStateBytes(heads, width),
    "gatedDelta: the state is too small",
  );
  const { reduction, lanes, subgroupSize } = teamOf(context);
  const shared = Math.min(columnLanes, lanes);
  launch(context, gatedDeltaKernel, {
    shader: `gated_delta.${reduction}`,
    constants: [lanes, width, shared, grouped ? 1 : 0],
    subgroupSize,
    parameters: { ...rest, decay: decay.data, offset: offset.data },
    groups: [heads, (width * shared) / lanes, Math.min(rowCapacity, sequenceCapacity)],
    label: "gated delta rule",
  });
}
