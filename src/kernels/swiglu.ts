/** The gated activation of a feed-forward block. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";

export const swigluKernel = defineKernel("swiglu", {
  gate: reads,
  up: reads,
  y: writes,
  switch: reads,
  step: reads,
  width: u32,
});

const workgroup = 64;

export interface Swiglu {
  /** [rowCapacity, width] */
  readonly gate: BufferSlice;
  readonly up: BufferSlice;
  /** [rowCapacity, width], written; may be `gate`. */
  readonly y: BufferSlice;
  /** [rowCapacity]: each row is scaled by the sigmoid of its value. */
  readonly rowSwitch?: BufferSlice | undefined;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly width: number;
}

export function swiglu(
  context: KernelContext,
  { gate, up, y, rowSwitch, step, rowCapacity, width }: Swiglu,
): void {
  invariant(width % 4 === 0, `swiglu: width ${width} is no multiple of 4`);
  launch(context, swigluKernel, {
    shader: "swiglu",
    constants: [workgroup, rowSwitch === undefined ? 0 : 1],
    parameters: { gate, up, y, step, width, ...(rowSwitch && { switch: rowSwitch }) },
    groups: [ceilDiv((rowCapacity * width) / 4, workgroup)],
    label: "swiglu",
  });
}
