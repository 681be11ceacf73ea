/** RMS normalization of heads with a gate: the output of a recurrent layer. */
import { invariant } from "../errors.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";
import { teamOf } from "./reduction.ts";

export const gatedNormKernel = defineKernel("gated_norm", {
  x: reads,
  weight: reads,
  gate: reads,
  y: writes,
  step: reads,
  heads: u32,
  width: u32,
  epsilon: f32,
});

export interface GatedNorm {
  /** [rowCapacity, heads, weight.length] */
  readonly x: BufferSlice;
  /** The same for all heads. */
  readonly weight: Vector;
  /** [rowCapacity, heads, weight.length], before its SiLU. */
  readonly gate: BufferSlice;
  /** [rowCapacity, heads, weight.length], written; may be `x`. */
  readonly y: BufferSlice;
  readonly heads: number;
  readonly epsilon: number;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
}

export function gatedNorm(context: KernelContext, norm: GatedNorm): void {
  const { x, weight, gate, y, heads, epsilon, step, rowCapacity } = norm;
  const width = weight.length;
  invariant(width % 4 === 0, `gatedNorm: width ${width} is no multiple of 4`);
  const { reduction, lanes, subgroupSize } = teamOf(context);
  launch(context, gatedNormKernel, {
    shader: `gated_norm.${reduction}`,
    constants: [lanes],
    subgroupSize,
    parameters: { x, weight: weight.data, gate, y, step, heads, width, epsilon },
    groups: [heads, rowCapacity],
    label: `gated norm ${weight.name}`,
  });
}
