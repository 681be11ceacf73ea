/** Router and choice of experts for one row, in one dispatch. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { isComputable, type Matrix, type Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { choiceConstants, type ExpertChoice } from "./expert-choice.ts";
import {
  defineKernel,
  launch,
  matrix,
  reads,
  updates,
  writes,
  type KernelContext,
} from "./kernel.ts";
import { teamOf } from "./reduction.ts";
import type { ShaderName } from "./shaders.ts";

export const routerKernel = defineKernel("router", {
  w: matrix,
  x: reads,
  norm: reads,
  logits: updates,
  offsets: reads,
  bias: reads,
  factors: reads,
  choices: writes,
  counter: updates,
  step: reads,
  used: u32,
  scale: f32,
  epsilon: f32,
});

export interface Router extends Omit<ExpertChoice, "rowCapacity"> {
  /** [experts, width] */
  readonly w: Matrix;
  /** [experts]: added to the logits. */
  readonly offsets?: Vector | undefined;
  /** [width]: the residual stream. */
  readonly x: BufferSlice;
  readonly norm: Vector;
  readonly epsilon: number;
  /** A zero of four bytes, which it leaves as it was. */
  readonly counter: BufferSlice;
}

/** Experts that a workgroup looks after at once, each in a subgroup. */
const subgroups = 4;
/** The normalized row lies in shared memory. */
const widthMax = 4096;

export function canRoute({ dtype, columns }: Matrix): boolean {
  return (
    ["F32", "F16", "BF16"].includes(dtype) && isComputable(dtype, columns) && columns <= widthMax
  );
}

export function router(context: KernelContext, args: Router): void {
  const { w, x, norm, logits, offsets, bias, factors, routing, choices, counter, step } = args;
  const { used, scale } = routing;
  invariant(canRoute(w) && w.rows === routing.experts, `router ${w.name}: ${w.rows} of ${w.dtype}`);
  const { reduction, lanes, subgroupSize } = teamOf(context);
  launch(context, routerKernel, {
    shader: `router.${w.dtype}.${reduction}` as ShaderName,
    constants: [
      subgroups * lanes,
      lanes,
      w.columns,
      ...choiceConstants(args),
      Number(offsets !== undefined),
    ],
    subgroupSize,
    parameters: {
      w,
      x,
      norm: norm.data,
      logits,
      choices,
      counter,
      step,
      used,
      scale,
      epsilon: args.epsilon,
      ...(offsets && { offsets: offsets.data }),
      ...(bias && { bias: bias.data }),
      ...(factors && { factors: factors.data }),
    },
    groups: [ceilDiv(w.rows, subgroups)],
    label: w.name,
  });
}
