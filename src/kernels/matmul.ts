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

/** How the work is laid out. */
export interface TileTuning {
  /** Results of a workgroup. */
  readonly tileRows: number;
  readonly tileColumns: number;
  /** Results of an invocation. */
  readonly patchRows: number;
  readonly patchColumns: number;
}

/** From the one that shares most to the one that spreads most. */
const tileTunings: readonly TileTuning[] = [
  { tileRows: 64, tileColumns: 32, patchRows: 4, patchColumns: 4 },
  { tileRows: 32, tileColumns: 32, patchRows: 4, patchColumns: 2 },
  { tileRows: 32, tileColumns: 16, patchRows: 2, patchColumns: 2 },
];

/** Workgroups that fill a large GPU. */
const workgroupsWanted = 256;

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
export function matmulTiles(
  context: KernelContext,
  product: Omit<Matmul, "deterministic">,
  tuning: TileTuning = tileTuning(product),
): void {
  const { w, x, y, rowCapacity } = product;
  const { tileRows, tileColumns, patchRows, patchColumns } = tuning;
  invariant(
    isComputable(w.dtype, w.columns),
    `matmul ${w.name}: ${w.columns} columns of ${w.dtype}`,
  );
  invariant(x.byteSize >= rowCapacity * w.columns * 4, `matmul ${w.name}: x is too small`);
  invariant(y.byteSize >= rowCapacity * w.rows * 4, `matmul ${w.name}: y is too small`);
  const workgroup = (tileRows / patchRows) * (tileColumns / patchColumns);
  launch(context, matmulKernel, {
    shader: `matmul.${w.dtype}`,
    constants: [workgroup, tileRows, tileColumns, patchRows, patchColumns],
    parameters: productParameters(product),
    groups: [ceilDiv(w.rows, tileRows), ceilDiv(rowCapacity, tileColumns)],
    label: w.name,
  });
}

/** The largest tiles that give everyone something to do. */
function tileTuning({ w, rowCapacity }: Pick<Matmul, "w" | "rowCapacity">): TileTuning {
  const workgroups = ({ tileRows, tileColumns }: TileTuning) =>
    ceilDiv(w.rows, tileRows) * ceilDiv(rowCapacity, tileColumns);
  const tuning =
    tileTunings.find((each) => workgroups(each) >= workgroupsWanted) ?? tileTunings.at(-1);
  invariant(tuning !== undefined, "there are no tiles");
  return tuning;
}
