/** Products of a weight matrix with rows of activations that stand ready for it. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { isComputable, type Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { activationKind, isLinear, type ActivationKind, type Reader } from "./activations.ts";
import { halve } from "./halve.ts";
import { defineKernel, launch, type KernelContext } from "./kernel.ts";
import { linear } from "./linear.ts";
import { matmulDirect } from "./matmul-direct.ts";
import { matmulHalves } from "./matmul-halves.ts";
import { productFields, productParameters } from "./product-parameters.ts";

export const matmulKernel = defineKernel("matmul", productFields);

export interface Matmul extends Reader {
  /** [rowCapacity, width], as `activation` says. */
  readonly x: BufferSlice;
  /** What `activationKind` says by default. */
  readonly activation?: ActivationKind;
  /** Nobody else reads x, so that floats may be converted where they are. */
  readonly consumes?: boolean;
  /** [rowCapacity, rows], written, or added to with `accumulate`. */
  readonly y: BufferSlice;
  readonly bias?: Vector | undefined;
  /** [rowCapacity]: each row of results is scaled by the sigmoid of its value. */
  readonly rowSwitch?: BufferSlice | undefined;
  readonly step: BufferSlice;
  readonly accumulate?: boolean;
  /** The rows are the step's output rows. */
  readonly outputs?: boolean;
}

const tileRows = 64;
const tileColumns = 32;

/** y = W · x (+ bias) (+ y) */
export function matmul(context: KernelContext, product: Matmul): void {
  const { w, x, step, rowCapacity, outputs = false, consumes = false } = product;
  const wanted = activationKind(context, product);
  const { activation = wanted } = product;
  invariant(rowCapacity > 0, "matmul of no rows");
  const isHalved = wanted === "half" || wanted === "tile";
  if (isHalved && activation === "float" && consumes) {
    halve(context, { x, y: x, width: w.columns, step, rowCapacity, outputs });
    matmulHalves(context, product);
    return;
  }
  if (activation === "half") {
    matmulHalves(context, product);
    return;
  }
  if (activation === "tile") {
    matmulDirect(context, product);
    return;
  }
  if (isLinear(context, product)) {
    linear(context, { ...product, activation });
    return;
  }
  invariant(activation === "float", `matmul ${w.name}: tiles of ${activation}`);
  matmulTiles(context, product);
}

/** In tiles through shared memory, floats throughout: the plain variant, for every device. */
export function matmulTiles(context: KernelContext, product: Omit<Matmul, "deterministic">): void {
  const { w, x, y, rowCapacity } = product;
  invariant(
    isComputable(w.dtype, w.columns),
    `matmul ${w.name}: ${w.columns} columns of ${w.dtype}`,
  );
  invariant(x.byteSize >= rowCapacity * w.columns * 4, `matmul ${w.name}: x is too small`);
  invariant(y.byteSize >= rowCapacity * w.rows * 4, `matmul ${w.name}: y is too small`);
  launch(context, matmulKernel, {
    shader: `matmul.${w.dtype}`,
    constants: [],
    parameters: productParameters(product),
    groups: [ceilDiv(w.rows, tileRows), ceilDiv(rowCapacity, tileColumns)],
    label: w.name,
  });
}
