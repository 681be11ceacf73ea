/** What every block begins with: RMS normalization, and several products of the normalized rows. */
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { activationKind, type ActivationKind } from "./activations.ts";
import { halve, halveInTiles } from "./halve.ts";
import type { KernelContext } from "./kernel.ts";
import { linear } from "./linear.ts";
import { matmul } from "./matmul.ts";
import { quantize } from "./quantize.ts";
import { rmsNorm } from "./rms-norm.ts";

export interface Product {
  readonly w: Matrix;
  readonly bias?: Vector | undefined;
  /** [rowCapacity, w.rows], written. */
  readonly y: BufferSlice;
}

export interface NormedRows {
  /** [rowCapacity, width]: the residual stream. */
  readonly x: BufferSlice;
  readonly norm: Vector;
  readonly epsilon: number;
  /** Scratch of `normedProductsFloats` floats a row. */
  readonly workspace: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly deterministic: boolean;
  /** Take the step's output rows only. */
  readonly outputs?: boolean;
}

export interface NormedProducts extends NormedRows {
  readonly products: readonly Product[];
}

/** Floats of workspace a row: the normalized rows as floats, as codes or halves, and in tiles. */
export function normedProductsFloats(width: number): number {
  return 3 * width;
}

/** y = W · norm(x) + bias, for each product. */
export function normedProducts(context: KernelContext, args: NormedProducts): void {
  const { norm, epsilon, x, products, outputs = false } = args;
  const { step, rowCapacity, deterministic } = args;
  if (rowCapacity === 1 && !deterministic) {
    const one = { x, norm: { weight: norm, epsilon }, step, rowCapacity, outputs };
    for (const { w, bias, y } of products) {
      const activation = activationKind(context, { w, rowCapacity, deterministic });
      linear(context, { ...one, w, bias, y, activation });
    }
    return;
  }
  const prepared = prepareRows(
    context,
    args,
    products.map(({ w }) => w),
  );
  for (const { w, bias, y } of products) {
    const reader = { w, rowCapacity, deterministic };
    matmul(context, { ...reader, bias, y, x: prepared(w), step, outputs });
  }
}

/** Normalizes rows once for each kind of activation that is read; returns where they are. */
export function prepareRows(
  context: KernelContext,
  args: NormedRows,
  readers: readonly Matrix[],
): (w: Matrix) => BufferSlice {
  const { x, norm, epsilon, workspace, outputs = false } = args;
  const { step, rowCapacity, deterministic } = args;
  const kindOf = (w: Matrix) => activationKind(context, { w, rowCapacity, deterministic });
  const kinds = new Set(readers.map(kindOf));
  const byteSize = rowCapacity * norm.length * 4;
  const memory = {
    float: subslice(workspace, 0, byteSize),
    int8: subslice(workspace, byteSize, byteSize),
    half: subslice(workspace, byteSize, byteSize),
    tile: subslice(workspace, 2 * byteSize, byteSize),
  } as const satisfies Record<ActivationKind, BufferSlice>;
  const rows = { step, rowCapacity };
  if (kinds.has("float") || outputs) {
    const y = memory.float;
    rmsNorm(context, { x, weight: norm, y, epsilon, gather: outputs, ...rows });
  }
  for (const [kind, write] of [
    ["int8", quantize],
    ["half", halve],
    ["tile", halveInTiles],
  ] as const) {
    if (!kinds.has(kind)) continue;
    const [width, y] = [norm.length, memory[kind]];
    // Output rows are gathered by the norm, so that they only have to be converted here.
    write(
      context,
      outputs
        ? { x: memory.float, y, width, outputs, ...rows }
        : { x, y, width, norm: { weight: norm, epsilon }, ...rows },
    );
  }
  return (w) => memory[kindOf(w)];
}
