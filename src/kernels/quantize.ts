/** Rows of floats → 8-bit codes with steps, normalized first if wanted. */
import { invariant } from "../errors.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { codesIn, stepsIn } from "./activations.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";
import { rowWorkgroup, teamOf } from "./reduction.ts";

export const quantizeKernel = defineKernel("quantize", {
  x: reads,
  weight: reads,
  codes: writes,
  steps: writes,
  step: reads,
  width: u32,
  epsilon: f32,
});

export interface Quantize {
  /** [rowCapacity, width] */
  readonly x: BufferSlice;
  /** Codes and steps, in memory that would hold the floats. */
  readonly y: BufferSlice;
  readonly width: number;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  /** The rows are the step's output rows, packed. */
  readonly outputs?: boolean;
  /** RMS normalization before. */
  readonly norm?: { readonly weight: Vector; readonly epsilon: number } | undefined;
}

export function quantize(context: KernelContext, args: Quantize): void {
  const { x, y, width, step, rowCapacity, outputs = false, norm } = args;
  invariant(width % 32 === 0, `quantize: width ${width} is no multiple of 32`);
  const { reduction, subgroupSize } = teamOf(context);
  const workgroup = rowWorkgroup(context, width, rowCapacity);
  launch(context, quantizeKernel, {
    shader: `quantize.${reduction}`,
    constants: [workgroup, norm === undefined ? 0 : 1, outputs ? 1 : 0],
    subgroupSize,
    parameters: {
      x,
      codes: codesIn(y, rowCapacity, width),
      steps: stepsIn(y, rowCapacity, width),
      step,
      width,
      epsilon: norm?.epsilon ?? 0,
      ...(norm && { weight: norm.weight.data }),
    },
    groups: [rowCapacity],
    label: norm === undefined ? "quantize" : `norm ${norm.weight.name}`,
  });
}
