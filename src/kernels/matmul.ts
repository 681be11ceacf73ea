/** Products of a weight matrix with one or many rows of activations. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { blockFormats, type DType } from "../tensor/dtype.ts";
import { isComputable, type Matrix, type Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, matrix, reads, updates, type KernelContext } from "./kernel.ts";
import { teamOf } from "./reduction.ts";

const parameters = {
  w: matrix,
  x: reads,
  y: updates,
  bias: reads,
  step: reads,
  rows: u32,
  width: u32,
  flags: u32,
} as const;

export const matvecKernel = defineKernel("matvec", parameters);
export const matmulKernel = defineKernel("matmul", parameters);

/** Bits of `flags`, as in shaders/include/product_flags.glsl. */
const Flag = { HAS_BIAS: 1, ACCUMULATE: 2, OUTPUTS: 4 } as const;

export interface Matmul {
  /** [rows, width] */
  readonly w: Matrix;
  /** [rowCapacity, width] */
  readonly x: BufferSlice;
  /** [rowCapacity, rows], written, or added to with `accumulate`. */
  readonly y: BufferSlice;
  readonly bias?: Vector | undefined;
  readonly step: BufferSlice;
  /** The most rows of activations that a step brings. */
  readonly rowCapacity: number;
  readonly accumulate?: boolean;
  /** The rows are the step's output rows. */
  readonly outputs?: boolean;
  /** Sum in the same order whatever the number of rows. */
  readonly deterministic?: boolean;
  readonly variant?: ProductVariant;
}

/** Tuning of a product; results differ only in rounding. */
export type ProductVariant =
  | { readonly kernel: "tile" }
  | {
      readonly kernel: "vector";
      /** Invocations that share a row. */
      readonly lanes: number;
      /** Rows of W that one group of lanes computes. */
      readonly rows: number;
      /** Rows of activations for which a weight is unpacked once. */
      readonly columns: number;
      /** Subgroups in a workgroup. */
      readonly subgroups: number;
    };

/** Rows of activations up to which the vector kernel wins over tiles. */
const vectorRowsMax = 8;
const tileRows = 64;
const tileColumns = 32;

export function matmul(context: KernelContext, product: Matmul): void {
  const { w, x, y, bias, step, rowCapacity, accumulate = false, outputs = false } = product;
  invariant(
    isComputable(w.dtype, w.columns),
    `matmul ${w.name}: ${w.columns} columns of ${w.dtype}`,
  );
  invariant(x.byteSize >= rowCapacity * w.columns * 4, `matmul ${w.name}: x is too small`);
  invariant(y.byteSize >= rowCapacity * w.rows * 4, `matmul ${w.name}: y is too small`);
  const variant = product.variant ?? chooseVariant(context, product);
  const flags =
    (bias === undefined ? 0 : Flag.HAS_BIAS) |
    (accumulate ? Flag.ACCUMULATE : 0) |
    (outputs ? Flag.OUTPUTS : 0);
  const values = {
    w,
    x,
    y,
    step,
    rows: w.rows,
    width: w.columns,
    flags,
    ...(bias === undefined ? {} : { bias: bias.data }),
  };
  if (variant.kernel === "tile") {
    launch(context, matmulKernel, {
      shader: `matmul.${w.dtype}`,
      constants: [],
      parameters: values,
      groups: [ceilDiv(w.rows, tileRows), ceilDiv(rowCapacity, tileColumns)],
      label: w.name,
    });
    return;
  }
  const { reduction, lanes: teamLanes, subgroupSize } = teamOf(context);
  const { lanes, rows, columns, subgroups } = variant;
  invariant(lanes <= teamLanes, `matmul ${w.name}: ${lanes} lanes of ${teamLanes}`);
  const workgroup = teamLanes * subgroups;
  launch(context, matvecKernel, {
    shader: `matvec.${w.dtype}.${reduction}`,
    constants: [workgroup, lanes, rows, columns],
    subgroupSize,
    parameters: values,
    groups: [ceilDiv(w.rows, (workgroup / lanes) * rows), ceilDiv(rowCapacity, columns)],
    label: w.name,
  });
}

/** Values that one invocation reads at once (UNIT_VALUES of shaders/include/quant). */
function unitValues(dtype: DType): number {
  const { blockValues } = blockFormats[dtype];
  if (blockValues === 1) return 8;
  return blockValues === 32 || dtype === "IQ4_XS" ? 32 : 64;
}

/** Invocations of a team that share a row: no more than there are units in it. */
export function rowLanes(w: Matrix, teamLanes: number): number {
  let lanes = teamLanes;
  while (lanes > 1 && lanes / 2 >= w.columns / unitValues(w.dtype)) lanes /= 2;
  return lanes;
}

function chooseVariant(context: KernelContext, product: Matmul): ProductVariant {
  const { w, rowCapacity, deterministic = false } = product;
  const small = rowCapacity <= vectorRowsMax || context.capabilities.kind === "cpu";
  if (!small && !deterministic) return { kernel: "tile" };
  const lanes = rowLanes(w, teamOf(context).lanes);
  const columns = Math.min(rowCapacity, vectorRowsMax);
  return { kernel: "vector", lanes, rows: 1, columns, subgroups: 1 };
}
