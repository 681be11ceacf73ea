/** The soft cap on logits. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, updates, type KernelContext } from "./kernel.ts";

export const softCapKernel = defineKernel("soft_cap", {
  y: updates,
  step: reads,
  width: u32,
  cap: f32,
});

const workgroup = 256;

export interface SoftCap {
  /** [outputCapacity, width], capped in place. */
  readonly y: BufferSlice;
  readonly step: BufferSlice;
  readonly outputCapacity: number;
  readonly width: number;
  /** No value exceeds it. */
  readonly cap: number;
}

/** y = cap · tanh(y / cap) for the step's output rows. */
export function softCap(
  context: KernelContext,
  { y, step, outputCapacity, width, cap }: SoftCap,
): void {
  invariant(y.byteSize >= outputCapacity * width * 4, "softCap: y is too small");
  launch(context, softCapKernel, {
    shader: "soft_cap",
    constants: [workgroup],
    parameters: { y, step, width, cap },
    groups: [ceilDiv(width, workgroup), outputCapacity],
    label: "soft cap",
  });
}
