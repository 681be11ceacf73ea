/** Products of a weight matrix with rows of activations that stand ready for it. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { isComputable, type Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { activationKind, linearRowsMax, type ActivationKind, type Reader } from "./activations.ts";
import { defineKernel, launch, matrix, reads, updates, type KernelContext } from "./kernel.ts";
import { linear } from "./linear.ts";
import { productFlags } from "./product-flags.ts";

export const matmulKernel = defineKernel("matmul", {
  w: matrix,
  x: reads,
  y: updates,
  bias: reads,
  step: reads,
  rows: u32,
  width: u32,
  flags: u32,
});

export interface Matmul extends Reader {
  /** [rowCapacity, width], as `activation` says. */
  readonly x: BufferSlice;
  /** What `activationKind` says by default. */
  readonly activation?: ActivationKind;
  /** [rowCapacity, rows], written, or added to with `accumulate`. */
  readonly y: BufferSlice;
  readonly bias?: Vector | undefined;
  readonly step: BufferSlice;
  readonly accumulate?: boolean;
  /** The rows are the step's output rows. */
  readonly outputs?: boolean;
}

const tileRows = 64;
const tileColumns = 32;

/** y = W · x (+ bias) (+ y) */
export function matmul(context: KernelContext, product: Matmul): void {
  const { w, rowCapacity, activation = activationKind(context, product) } = product;
  invariant(rowCapacity > 0, "matmul of no rows");
  if (isLinear(context, product)) {
    linear(context, { ...product, activation });
    return;
  }
  invariant(activation === "float", `matmul ${w.name}: tiles of ${activation}`);
  matmulTiles(context, product);
}

/** Whether the rows are so few that one pass over the weights serves all of them. */
export function isLinear(context: KernelContext, { rowCapacity, deterministic }: Reader): boolean {
  return rowCapacity <= linearRowsMax || deterministic || context.capabilities.kind === "cpu";
}

/** In tiles through shared memory, floats throughout: the plain variant, for every device. */
export function matmulTiles(context: KernelContext, product: Omit<Matmul, "deterministic">): void {
  const { w, x, y, bias, step, rowCapacity } = product;
  invariant(
    isComputable(w.dtype, w.columns),
    `matmul ${w.name}: ${w.columns} columns of ${w.dtype}`,
  );
  invariant(x.byteSize >= rowCapacity * w.columns * 4, `matmul ${w.name}: x is too small`);
  invariant(y.byteSize >= rowCapacity * w.rows * 4, `matmul ${w.name}: y is too small`);
  launch(context, matmulKernel, {
    shader: `matmul.${w.dtype}`,
    constants: [],
    parameters: {
      w,
      x,
      y,
      step,
      rows: w.rows,
      width: w.columns,
      flags: productFlags(product),
      ...(bias && { bias: bias.data }),
    },
    groups: [ceilDiv(w.rows, tileRows), ceilDiv(rowCapacity, tileColumns)],
    label: w.name,
  });
}
