/** Scrambled results of attention on matrix units as they should be. */
import { invariant } from "../errors.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, updates, type KernelContext } from "./kernel.ts";
import { teamOf } from "./reduction.ts";

export const unscrambleKernel = defineKernel("unscramble", {
  query: reads,
  x: updates,
  step: reads,
  heads: u32,
});

export interface Unscramble {
  /** [rowCapacity, heads, headWidth] */
  readonly x: BufferSlice;
  /** [rowCapacity, heads, query | gate]: the gates that results go through, if they do. */
  readonly gates?: BufferSlice | undefined;
  readonly heads: number;
  readonly headWidth: number;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
}

export function unscramble(context: KernelContext, args: Unscramble): void {
  const { x, gates, heads, headWidth, step, rowCapacity } = args;
  invariant(headWidth % 4 === 0, `unscramble: heads of width ${headWidth}`);
  const { lanes, subgroupSize } = teamOf(context);
  launch(context, unscrambleKernel, {
    shader: "unscramble",
    constants: [lanes, headWidth / 4, Number(gates !== undefined)],
    subgroupSize,
    parameters: { x, step, heads, ...(gates && { query: gates }) },
    groups: [heads, rowCapacity],
    label: "unscramble",
  });
}
