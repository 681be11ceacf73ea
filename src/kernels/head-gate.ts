/** The gate on attention's output, of which each head's values stand behind its query. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";

export const headGateKernel = defineKernel("head_gate", {
  x: reads,
  gate: reads,
  y: writes,
  step: reads,
  heads: u32,
  headWidth: u32,
});

const workgroup = 64;

export interface HeadGate {
  /** [rowCapacity, heads, headWidth] */
  readonly x: BufferSlice;
  /** [rowCapacity, heads, query | gate, headWidth], before the sigmoid. */
  readonly gate: BufferSlice;
  /** [rowCapacity, heads, headWidth], written; may be `x`. */
  readonly y: BufferSlice;
  readonly heads: number;
  readonly headWidth: number;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
}

export function headGate(context: KernelContext, args: HeadGate): void {
  const { rowCapacity, ...parameters } = args;
  const { heads, headWidth } = args;
  invariant(headWidth % 4 === 0, `headGate: head width ${headWidth} is no multiple of 4`);
  launch(context, headGateKernel, {
    shader: "head_gate",
    constants: [workgroup],
    parameters,
    groups: [ceilDiv((rowCapacity * heads * headWidth) / 4, workgroup)],
    label: "attention gate",
  });
}
