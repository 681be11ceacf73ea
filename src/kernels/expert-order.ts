/** The choices of a step, sorted by expert and cut into tiles: each expert's rows side by side. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { expertsMax } from "./expert-choice.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";

export const expertOrderKernel = defineKernel("expert_order", {
  choices: reads,
  order: writes,
  step: reads,
  slots: u32,
  tileCapacity: u32,
});

/** As `ORDER_HEAD` in shaders/include/expert_order.glsl. */
const headWords = 4;
/** The least choices of a whole tile. */
const tileMin = 2;

export interface ExpertOrder {
  readonly experts: number;
  /** From `expertChoice`. */
  readonly choices: BufferSlice;
  /** Experts of a row. */
  readonly slots: number;
  /** Choices of a tile, at most. */
  readonly tile: number;
  /** `orderWords` words a row, written: see shaders/include/expert_order.glsl. */
  readonly order: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
}

/** Words of an order a row, whatever the tiles. */
export function orderWords(slots: number): number {
  // Two for each tile, one for each choice; every expert may have a tile that is not full.
  return headWords + 3 * slots + 2 * ceilDiv(slots, tileMin);
}

/** The most tiles that there can be. */
export function tileCapacityOf(order: {
  readonly experts: number;
  readonly slots: number;
  readonly tile: number;
  readonly rowCapacity: number;
}): number {
  const { experts, slots, tile, rowCapacity } = order;
  const choices = rowCapacity * slots;
  const partial = Math.min(experts, choices);
  return partial + Math.floor((choices - partial) / tile);
}

export function expertOrder(context: KernelContext, args: ExpertOrder): void {
  const { experts, choices, slots, tile, order, step, rowCapacity } = args;
  const { limits, kind } = context.capabilities;
  invariant(experts <= expertsMax && tile >= tileMin, `expertOrder: ${tile} of ${experts}`);
  invariant(order.byteSize >= rowCapacity * orderWords(slots) * 4, "expertOrder: it is too small");
  launch(context, expertOrderKernel, {
    shader: "expert_order",
    constants: [kind === "cpu" ? 64 : Math.min(512, limits.workgroupInvocations), experts, tile],
    parameters: { choices, order, step, slots, tileCapacity: tileCapacityOf(args) },
    groups: [1],
    label: "order of experts",
  });
}
