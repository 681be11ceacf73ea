/**
 * How a kernel sums over invocations on a device: with subgroup operations, or through shared
 * memory.
 */
import type { KernelContext } from "./kernel.ts";

export type Reduction = "subgroup" | "shared";

export interface Team {
  readonly reduction: Reduction;
  /** Invocations that work in lockstep: a subgroup, or what stands in for one. */
  readonly lanes: number;
  /** To be asked for when the pipeline is made; undefined where the device has only one size. */
  readonly subgroupSize: number | undefined;
}

const sharedLanes = 32;
/** Blocks of 32 activations lie in as many neighbours, a quad in each. */
const lanesMin = 8;
/** What kernels like best. */
const lanesWanted = 32;

/**
 * Subgroup operations are used only where the size is certain; Intel's compilers, for one, choose
 * among several unless told.
 */
export function teamOf(context: Pick<KernelContext, "capabilities" | "force">): Team {
  const { subgroup } = context.capabilities;
  const { reduction = "subgroup", subgroupSize = lanesWanted } = context.force ?? {};
  const isCertain = subgroup.sizeControl || subgroup.minSize === subgroup.maxSize;
  const lanes = subgroup.sizeControl
    ? Math.min(Math.max(subgroupSize, subgroup.minSize), subgroup.maxSize)
    : subgroup.size;
  const isUsable = subgroup.arithmetic && subgroup.shuffle && isCertain && lanes >= lanesMin;
  if (!isUsable || reduction === "shared") {
    return { reduction: "shared", lanes: sharedLanes, subgroupSize: undefined };
  }
  return { reduction, lanes, subgroupSize: subgroup.sizeControl ? lanes : undefined };
}

/** Rows that leave most of a GPU idle. */
const fewRows = 64;

/** Invocations that share a row of `width` values, all of which have to meet. */
export function rowWorkgroup(
  context: Pick<KernelContext, "capabilities" | "force">,
  width: number,
  rowCapacity: number,
): number {
  const { lanes } = teamOf(context);
  const { kind, limits } = context.capabilities;
  if (kind === "cpu") return lanes;
  // Two quads each, where there are others to spare.
  const wanted = rowCapacity <= fewRows ? 2 ** Math.ceil(Math.log2(width / 8)) : 256;
  return Math.max(lanes, Math.min(Math.max(wanted, 256), limits.workgroupInvocations, 1024));
}
