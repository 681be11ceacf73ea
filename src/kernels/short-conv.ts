/** The short causal convolution of recurrent layers, with its state and SiLU. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, updates, writes, type KernelContext } from "./kernel.ts";

export const shortConvKernel = defineKernel("short_conv", {
  u: reads,
  weight: reads,
  y: writes,
  state: updates,
  step: reads,
  channels: u32,
  runCapacity: u32,
});

const workgroup = 64;
/** Inputs that a kernel of this length looks back on are kept in registers. */
export const convTapsMax = 8;

export interface ShortConv {
  /** [rowCapacity, channels], or [rowCapacity, 3, channels] if `gated`. */
  readonly u: BufferSlice;
  /** Rows hold b, g and v: b ⊙ v is convolved, and the result gated by g, without SiLU. */
  readonly gated?: boolean;
  /** [channels, taps], the newest input's last. */
  readonly weight: Vector;
  /** [rowCapacity, channels], written. */
  readonly y: BufferSlice;
  /** [sequenceCapacity, taps, channels] floats, updated; see shaders/include/ring.glsl. */
  readonly state: BufferSlice;
  readonly channels: number;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly sequenceCapacity: number;
}

/** Bytes of state that a sequence needs. */
export function shortConvStateBytes(channels: number, taps: number): number {
  return channels * taps * 4;
}

export function shortConv(context: KernelContext, conv: ShortConv): void {
  const { u, gated = false, weight, y, state, channels } = conv;
  const { step, rowCapacity, sequenceCapacity } = conv;
  const taps = weight.length / channels;
  invariant(
    Number.isInteger(taps) && taps >= 2 && taps <= convTapsMax,
    `shortConv ${weight.name}: ${weight.length} weights of ${channels} channels`,
  );
  invariant(
    state.byteSize >= sequenceCapacity * shortConvStateBytes(channels, taps),
    `shortConv ${weight.name}: the state is too small`,
  );
  const runCapacity = Math.min(rowCapacity, sequenceCapacity);
  launch(context, shortConvKernel, {
    shader: "short_conv",
    constants: [workgroup, taps - 1, gated ? 1 : 0],
    parameters: { u, weight: weight.data, y, state, step, channels, runCapacity },
    groups: [ceilDiv(channels, workgroup), runCapacity + rowCapacity],
    label: "convolution",
  });
}
