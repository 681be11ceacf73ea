/** What of the gated delta rule does not depend on the state, worked out for many rows at once. */
import { invariant } from "../errors.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { isDeltaWidth, type GatedDelta } from "./gated-delta.ts";
import { defineKernel, launch, reads, updates, writes, type KernelContext } from "./kernel.ts";
import { teamOf } from "./reduction.ts";

export const deltaTermsKernel = defineKernel("delta_terms", {
  mixed: updates,
  beta: reads,
  alpha: reads,
  decay: reads,
  offset: reads,
  terms: writes,
  step: reads,
  heads: u32,
  keyHeads: u32,
  channels: u32,
  epsilon: f32,
});

/** Keys and queries in `mixed` are normalized where they are. */
export interface DeltaTerms extends Omit<
  GatedDelta,
  "state" | "result" | "convolution" | "terms" | "sequenceCapacity"
> {
  /** [rowCapacity, heads, 4], written: what is kept, what is written, k · q. */
  readonly terms: BufferSlice;
}

export function deltaTerms(context: KernelContext, args: DeltaTerms): void {
  const { mixed, beta, alpha, decay, offset, terms, heads, keyHeads, width, epsilon } = args;
  const { grouped = false, step, rowCapacity } = args;
  invariant(isDeltaWidth(width), `deltaTerms: width ${width}`);
  invariant(terms.byteSize >= rowCapacity * heads * 16, "deltaTerms: terms are too small");
  const { reduction, lanes, subgroupSize } = teamOf(context);
  const channels = (2 * keyHeads + heads) * width;
  launch(context, deltaTermsKernel, {
    shader: `delta_terms.${reduction}`,
    constants: [lanes, width, grouped ? 1 : 0],
    subgroupSize,
    parameters: {
      ...{ mixed, beta, alpha, terms, step, heads, keyHeads, channels, epsilon },
      decay: decay.data,
      offset: offset.data,
    },
    groups: [keyHeads, rowCapacity],
    label: "terms of the delta rule",
  });
}
