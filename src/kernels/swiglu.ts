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
  upStride: u32,
});

const workgroup = 64;

/** ACTIVATION in shaders/include/gate.glsl. */
export const activations = { silu: 0, gelu: 1, clamped: 2 } as const;

/** SiLU, GELU in its tanh form, or what gpt-oss has. */
export type Activation = keyof typeof activations;

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
  /** Of the gate; SiLU by default. */
  readonly activation?: Activation;
  /** Floats from a row of `up` to the next; `width` by default. */
  readonly upStride?: number;
}

export function swiglu(context: KernelContext, args: Swiglu): void {
  const { gate, up, y, rowSwitch, step, rowCapacity, width } = args;
  const { activation = "silu", upStride = width } = args;
  invariant(width % 4 === 0, `swiglu: width ${width} is no multiple of 4`);
  invariant(upStride % 4 === 0, `swiglu: stride ${upStride} is no multiple of 4`);
  launch(context, swigluKernel, {
    shader: "swiglu",
    constants: [workgroup, rowSwitch === undefined ? 0 : 1, activations[activation]],
    parameters: { gate, up, y, step, width, upStride, ...(rowSwitch && { switch: rowSwitch }) },
    groups: [ceilDiv(width / 4, workgroup), rowCapacity],
    label: `${activation} gate`,
  });
}
