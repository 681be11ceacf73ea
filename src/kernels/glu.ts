/** The gated activation of a feed-forward block, where no product does it on the way. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { gateNumber, type GateFunction } from "./gate.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";

export const gluKernel = defineKernel("glu", {
  gate: reads,
  up: reads,
  y: writes,
  step: reads,
  width: u32,
  upStride: u32,
});

const workgroup = 64;

export interface Glu {
  /** [rowCapacity, width] */
  readonly gate: BufferSlice;
  readonly up: BufferSlice;
  /** [rowCapacity, width], written; may be `gate`. */
  readonly y: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly width: number;
  /** Of the gate; SiLU by default. */
  readonly activation?: GateFunction;
  /** Floats from a row of `up` to the next; `width` by default. */
  readonly upStride?: number;
}

export function glu(context: KernelContext, args: Glu): void {
  const { gate, up, y, step, rowCapacity, width } = args;
  const { activation = "silu", upStride = width } = args;
  invariant(width % 4 === 0, `glu: width ${width} is no multiple of 4`);
  invariant(upStride % 4 === 0, `glu: stride ${upStride} is no multiple of 4`);
  launch(context, gluKernel, {
    shader: "glu",
    constants: [workgroup, gateNumber(activation)],
    parameters: { gate, up, y, step, width, upStride },
    groups: [ceilDiv(width / 4, workgroup), rowCapacity],
    label: `${activation} gate`,
  });
}
