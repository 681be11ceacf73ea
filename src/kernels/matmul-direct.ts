/** Products with some rows of activations on matrix units: fragments are filled in registers. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { DType } from "../tensor/dtype.ts";
import type { Matrix } from "../tensor/tensor.ts";
import type { Capabilities } from "../vulkan/capabilities.ts";
import { u32 } from "../vulkan/layout.ts";
import { holdsQuads } from "./fragments.ts";
import { gateNumber, type GateFunction } from "./gate.ts";
import { defineKernel, launch, matrix, type KernelContext } from "./kernel.ts";
import type { HalvesProduct } from "./matmul-halves.ts";
import { matrixUnitsOf } from "./matrix-units.ts";
import { productFlags } from "./product-flags.ts";
import { productFields, productParameters } from "./product-parameters.ts";
import type { ShaderName } from "./shaders.ts";
import { unitValues } from "./unit-values.ts";

export const matmulDirectKernel = defineKernel("matmul_direct", {
  ...productFields,
  capacity: u32,
  up: matrix,
});

export interface DirectProduct extends HalvesProduct {
  /**
   * y = gate(W · x) ⊙ (Up · x) in tiles, with `up` of the type and shape of `w`; what exceeds a
   * million is cut to it.
   */
  readonly gated?: { readonly up: Matrix; readonly gate: GateFunction } | undefined;
}

/** How the work is laid out; results differ only in rounding. */
export interface DirectTuning {
  /** Rows of W that a workgroup takes, in tiles of 16. */
  readonly rowTiles: number;
  /** Rows of activations that it takes. */
  readonly columns: number;
  /** Subgroups that share the inner dimension. */
  readonly subgroups: number;
}

/** Invocations that share a row of weights. */
const sharing = 4;

/** Whether the device is such, and rows of such weights are whole groups of units. */
export function suitsDirect(capabilities: Capabilities, dtype: DType, width: number): boolean {
  return dtype !== "F32" && holdsQuads(capabilities) && width % (sharing * unitValues(dtype)) === 0;
}

/** y = W · x (+ bias) (+ y), with `x` in tiles as `halve` writes them. */
export function matmulDirect(
  context: KernelContext,
  product: DirectProduct,
  tuning: DirectTuning = defaultTuning(product),
): void {
  const { w, gated, x, y, rowCapacity } = product;
  const { rowTiles, columns, subgroups } = tuning;
  invariant(suitsDirect(context.capabilities, w.dtype, w.columns), `matmul ${w.name}: not direct`);
  invariant(x.byteSize >= rowCapacity * w.columns * 4, `matmul ${w.name}: x is too small`);
  invariant(y.byteSize >= rowCapacity * w.rows * 4, `matmul ${w.name}: y is too small`);
  if (gated !== undefined) {
    const { up } = gated;
    const isAlike = up.dtype === w.dtype && up.rows === w.rows && up.columns === w.columns;
    invariant(isAlike && w.rows % 8 === 0, `matmul ${w.name}: gated with ${up.name}`);
    invariant(productFlags(product) === 0, `matmul ${w.name}: gated, and more`);
  }
  launch(context, matmulDirectKernel, {
    shader: `matmul_direct.${w.dtype}` as ShaderName,
    constants: [
      subgroups * 32,
      rowTiles,
      columns,
      Math.min(columns, 16),
      Number(gated !== undefined),
      gateNumber(gated?.gate ?? "silu"),
    ],
    subgroupSize: matrixUnitsOf(context.capabilities)?.subgroupSize,
    parameters: {
      ...productParameters(product),
      capacity: rowCapacity,
      ...(gated && { up: gated.up }),
    },
    groups: [ceilDiv(rowCapacity, columns), ceilDiv(w.rows, rowTiles * 16)],
    label: w.name,
  });
}

/** Subgroups that keep a large GPU busy, by the columns that each takes. */
const subgroupsWanted = { 8: 2000, 16: 1500, 32: 750 } as const;
const subgroupsMax = 16;
/** Of W: where each subgroup has more to do, twice as many of them are better. */
const longRow = 8192;
/** Rows of W of which each subgroup takes more at once; not the head's, which are many anyway. */
const manyRows = { least: 8192, most: 32_768 } as const;

/** Few columns leave registers for few rows only; many repay the reading of their activations. */
function defaultTuning({ w, gated, rowCapacity }: DirectProduct): DirectTuning {
  const columns = rowCapacity <= 8 ? 8 : rowCapacity <= 16 ? 16 : 32;
  const sides = gated === undefined ? 1 : 2;
  const isTall = w.rows >= manyRows.least && w.rows < manyRows.most;
  // A pair of matrices has one tile of each at least.
  const tiles = columns === 32 ? 4 : columns === 16 || isTall ? 2 : sides;
  const rowTiles = tiles / sides;
  const workgroups = ceilDiv(w.rows, rowTiles * 16) * ceilDiv(rowCapacity, columns);
  const wanted = subgroupsWanted[columns] * (columns === 8 && w.columns >= longRow ? 2 : 1);
  // Each has something to do.
  const most = Math.min(subgroupsMax / Math.max(1, tiles / 2), w.columns / (sharing * 64));
  let subgroups = 4;
  while (subgroups * 2 <= most && workgroups * subgroups < wanted) subgroups *= 2;
  return { rowTiles, columns, subgroups };
}
