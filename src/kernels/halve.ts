/** Rows of floats → halves with a step a row, normalized first if wanted: for matrix units. */
import { invariant } from "../errors.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";
import type { Quantize } from "./quantize.ts";
import { teamOf } from "./reduction.ts";

export const halveKernel = defineKernel("halve", {
  x: reads,
  weight: reads,
  y: writes,
  step: reads,
  width: u32,
  parts: u32,
  epsilon: f32,
});

export interface Halve extends Quantize {
  /** A row of the step is so many rows of `width`, each with a step of its own. */
  readonly parts?: number;
}

/** As `quantize`, but `y` has each row in the room of its floats, and may be `x`. */
export function halve(context: KernelContext, args: Halve): void {
  const { x, y, width, step, rowCapacity, outputs = false, norm, parts = 1 } = args;
  invariant(width % 16 === 0, `halve: width ${width} is no multiple of 16`);
  const { reduction, lanes, subgroupSize } = teamOf(context);
  const workgroup = context.capabilities.kind === "cpu" ? lanes : Math.max(lanes, 256);
  launch(context, halveKernel, {
    shader: `halve.${reduction}`,
    constants: [workgroup, norm === undefined ? 0 : 1, outputs ? 1 : 0],
    subgroupSize,
    parameters: {
      x,
      y,
      step,
      width,
      parts,
      epsilon: norm?.epsilon ?? 0,
      ...(norm && { weight: norm.weight.data }),
    },
    groups: [rowCapacity * parts],
    label: norm === undefined ? "halve" : `norm ${norm.weight.name}`,
  });
}
