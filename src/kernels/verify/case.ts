/**
 * One thing to verify: a kernel variant on one input, and how far its result may lie from the
 * reference.
 */
import type { KernelContext } from "../kernel.ts";
import type { Workbench } from "./workbench.ts";

export type Force = NonNullable<KernelContext["force"]>;

export interface VerifyCase {
  readonly kernel: string;
  /** What tells this variant from others of the kernel. */
  readonly variant: string;
  /** The input: sizes and what is special about it. */
  readonly name: string;
  /** The largest relative error that is right. */
  readonly bound: number;
  /** Whether the device has what the variant needs; it always does without this. */
  readonly needs?: "subgroup" | "matrix units" | "known fragments";
  /** Runs the kernel and returns its largest relative error. */
  run(bench: Workbench): number;
}

/** Sums of many terms in single precision, in whatever order. */
export const sumBound = 2e-5;

/**
 * The largest difference, relative to the root mean square of the expected values: single elements
 * may cancel to nothing. A value that is no number is infinitely wrong.
 */
export function relativeError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (actual.length !== expected.length) return Number.POSITIVE_INFINITY;
  let squares = 0;
  let worst = 0;
  for (let i = 0; i < expected.length; i++) {
    const want = expected[i] ?? Number.NaN;
    squares += want * want;
    const difference = Math.abs((actual[i] ?? Number.NaN) - want);
    // Written so that NaN counts.
    if (!(difference <= worst))
      worst = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
  }
  if (squares === 0 || worst === Number.POSITIVE_INFINITY) return worst;
  return worst / Math.sqrt(squares / expected.length);
}

/** Both ways to sum over invocations, for the kernels that have them. */
export const reductions = [
  { variant: "subgroup", force: { reduction: "subgroup" }, needs: "subgroup" },
  { variant: "shared", force: { reduction: "shared" } },
] as const satisfies readonly { variant: string; force: Force; needs?: "subgroup" }[];
