/** RMS normalization of rows. */
import { invariant } from "../errors.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, updates, type KernelContext } from "./kernel.ts";
import { teamOf } from "./reduction.ts";

export const rmsNormKernel = defineKernel("rms_norm", {
  x: reads,
  weight: reads,
  y: updates,
  step: reads,
  width: u32,
  stride: u32,
  epsilon: f32,
  factor: f32,
});

export interface RmsNorm {
  /** [rowCapacity, groups, width] */
  readonly x: BufferSlice;
  /** [width] */
  readonly weight: Vector;
  /** [rowCapacity, groups, width], written, or added to with `accumulate`. */
  readonly y: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly epsilon: number;
  /** Take the step's output rows only, packed. */
  readonly gather?: boolean;
  readonly accumulate?: boolean;
  /** On the result, what was added to included; 1 by default. */
  readonly factor?: number;
  /** Runs of values in a row that are normalized each alone; 1 by default. */
  readonly groups?: number;
  /** Floats from row to row of y; `groups` · width by default. */
  readonly stride?: number;
}

export function rmsNorm(context: KernelContext, norm: RmsNorm): void {
  const { x, weight, y, step, rowCapacity, epsilon, gather = false } = norm;
  const { accumulate = false, factor = 1, groups = 1 } = norm;
  const width = weight.length;
  const { stride = groups * width } = norm;
  invariant(width % 4 === 0, `rmsNorm: width ${width} is no multiple of 4`);
  const { reduction, lanes, subgroupSize } = teamOf(context);
  // One subgroup needs no barrier; beyond some width more invocations pay.
  const workgroup =
    width > 16 * lanes && context.capabilities.kind !== "cpu" ? Math.max(lanes, 256) : lanes;
  launch(context, rmsNormKernel, {
    shader: `rms_norm.${reduction}`,
    constants: [workgroup, gather ? 1 : 0, accumulate ? 1 : 0],
    subgroupSize,
    parameters: { x, weight: weight.data, y, step, width, stride, epsilon, factor },
    groups: [rowCapacity, groups],
    label: `norm ${weight.name}`,
  });
}
