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

/**
 * `wanted`: the subgroup size that the kernel likes best. Subgroup operations are used only where
 * the size is certain; Intel's compilers, for one, choose among several unless told.
 */
export function teamOf({ capabilities, force = {} }: KernelContext, wanted = 32): Team {
  const { subgroup } = capabilities;
  const { reduction = "subgroup" } = force;
  const usable = subgroup.arithmetic && subgroup.shuffle && reduction === "subgroup";
  if (usable && subgroup.sizeControl) {
    const lanes = Math.min(
      Math.max(force.subgroupSize ?? wanted, subgroup.minSize),
      subgroup.maxSize,
    );
    return { reduction: "subgroup", lanes, subgroupSize: lanes };
  }
  if (usable && subgroup.minSize === subgroup.maxSize) {
    return { reduction: "subgroup", lanes: subgroup.size, subgroupSize: undefined };
  }
  return { reduction: "shared", lanes: sharedLanes, subgroupSize: undefined };
}
