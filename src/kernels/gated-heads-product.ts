/** What ends a recurrent layer: heads normalized and gated, and the product of what they give. */
import type { Matrix } from "../tensor/tensor.ts";
import { activationKind } from "./activations.ts";
import { gatedNorm, type GatedNorm } from "./gated-norm.ts";
import { halveInTiles } from "./halve.ts";
import type { KernelContext } from "./kernel.ts";
import { linear } from "./linear.ts";
import { matmul, type Matmul } from "./matmul.ts";
import { teamOf } from "./reduction.ts";

export interface GatedHeadsProduct
  extends Omit<GatedNorm, "y">, Pick<Matmul, "y" | "deterministic" | "accumulate"> {
  /** [rows, heads · weight.length] */
  readonly w: Matrix;
}

/**
 * y = W · (norm(x) ⊙ silu(gate)) (+ y); for one row in one dispatch. Overwrites x and the gate
 * otherwise.
 */
export function gatedHeadsProduct(context: KernelContext, args: GatedHeadsProduct): void {
  const { w, x, weight, epsilon, gate, rowCapacity, deterministic } = args;
  // A head's quads lie in neighbouring invocations.
  const fits = weight.length / 4 <= teamOf(context).lanes;
  if (rowCapacity === 1 && !deterministic && fits) {
    const activation = activationKind(context, { w, rowCapacity, deterministic });
    linear(context, { ...args, activation, norm: { weight, epsilon, gate } });
    return;
  }
  gatedNorm(context, { ...args, y: x });
  if (activationKind(context, { w, rowCapacity, deterministic }) === "tile") {
    // The gate has done its duty.
    halveInTiles(context, { x, y: gate, width: w.columns, step: args.step, rowCapacity });
    matmul(context, { ...args, x: gate, activation: "tile" });
    return;
  }
  matmul(context, { ...args, x, activation: "float", consumes: true });
}
