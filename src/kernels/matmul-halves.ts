/** Products on matrix units, whose activations are halves: the kernel for the number of rows. */
import { invariant } from "../errors.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import type { KernelContext } from "./kernel.ts";
import { isNarrow, matmulNarrow } from "./matmul-narrow.ts";
import { matmulWide } from "./matmul-wide.ts";
import { matrixUnitsOf, suitsMatrixUnits } from "./matrix-units.ts";

export interface HalvesProduct {
  readonly w: Matrix;
  /** [rowCapacity, width] halves, as `halve` leaves them. */
  readonly x: BufferSlice;
  /** [rowCapacity, rows], written, or added to with `accumulate`. */
  readonly y: BufferSlice;
  readonly bias?: Vector | undefined;
  /** [rowCapacity]: each row of results is scaled by the sigmoid of its value. */
  readonly rowSwitch?: BufferSlice | undefined;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly accumulate?: boolean;
  readonly outputs?: boolean;
}

export function matmulHalves(context: KernelContext, product: HalvesProduct): void {
  const { w, x, y, rowCapacity } = product;
  const units = matrixUnitsOf(context.capabilities);
  invariant(units !== undefined, `matmul ${w.name}: the device has no matrix units`);
  invariant(suitsMatrixUnits(w.dtype, w.columns), `matmul ${w.name}: ${w.columns} of ${w.dtype}`);
  invariant(x.byteSize >= rowCapacity * w.columns * 4, `matmul ${w.name}: x is too small`);
  invariant(y.byteSize >= rowCapacity * w.rows * 4, `matmul ${w.name}: y is too small`);
  if (isNarrow(units, rowCapacity)) matmulNarrow(context, units, product);
  else matmulWide(context, units, product);
}
