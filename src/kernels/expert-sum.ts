/** What the chosen experts of each row gave, summed by their weights. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, updates, type KernelContext } from "./kernel.ts";

export const expertSumKernel = defineKernel("expert_sum", {
  x: reads,
  y: updates,
  choices: reads,
  step: reads,
  slots: u32,
  width: u32,
});

const workgroup = 64;

export interface ExpertSum {
  /** [rowCapacity, slots, width] */
  readonly x: BufferSlice;
  /** [rowCapacity, width], added to unless `accumulate` is false. */
  readonly y: BufferSlice;
  readonly accumulate?: boolean;
  /** From `expertChoice`. */
  readonly choices: BufferSlice;
  /** Experts of a row. */
  readonly slots: number;
  readonly width: number;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
}

export function expertSum(context: KernelContext, args: ExpertSum): void {
  const { x, y, accumulate = true, choices, slots, width, step, rowCapacity } = args;
  invariant(width % 4 === 0, `expertSum: width ${width} is no multiple of 4`);
  invariant(x.byteSize >= rowCapacity * slots * width * 4, "expertSum: x is too small");
  launch(context, expertSumKernel, {
    shader: "expert_sum",
    constants: [workgroup, accumulate ? 1 : 0],
    parameters: { x, y, choices, step, slots, width },
    groups: [ceilDiv(width / 4, workgroup), rowCapacity],
    label: "sum of experts",
  });
}
