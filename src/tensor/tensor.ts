/** Weights on the device: matrices of any type and vectors of floats. */
import { invariant } from "../errors.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { blockFormats, type DType } from "./dtype.ts";
import { planeLayout } from "./planes.ts";

/** W of y = W · x, row by row: `rows` outputs of `columns` inputs each. */
export interface Matrix {
  readonly name: string;
  readonly dtype: DType;
  readonly rows: number;
  readonly columns: number;
  /** One slice a plane (see `planes.ts`). */
  readonly planes: readonly BufferSlice[];
}

/** Norm weights, biases and the like: always f32 on the device. */
export interface Vector {
  readonly name: string;
  readonly length: number;
  readonly data: BufferSlice;
}

/** The planes of a matrix within the slice that holds it. */
export function planesIn(slice: BufferSlice, dtype: DType, valueCount: number): BufferSlice[] {
  const layout = planeLayout(dtype, valueCount);
  invariant(slice.byteSize >= layout.byteSize, `${dtype} planes need ${layout.byteSize} bytes`);
  return layout.planes.map(({ offset, byteSize }) => subslice(slice, offset, byteSize));
}

/** Rows must be whole blocks, and whole 16-byte words for the types without blocks. */
export function isComputable(dtype: DType, columns: number): boolean {
  return columns % Math.max(blockFormats[dtype].blockValues, 8) === 0;
}
