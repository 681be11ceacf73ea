/** Weights on the device: matrices of any type and vectors of floats. */
import { invariant } from "../errors.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { blockFormats, type DType } from "./dtype.ts";
import { planeFields, planeLayout } from "./planes.ts";

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

/** Some rows of a matrix as a matrix, where a file keeps several in one. Nothing is copied. */
export function rowRange(matrix: Matrix, firstRow: number, rows: number): Matrix {
  const { dtype, columns, name } = matrix;
  invariant(firstRow + rows <= matrix.rows, `${name} has ${matrix.rows} rows`);
  const { blockValues } = blockFormats[dtype];
  const part = (row: number, byteSize: number) => ((row * columns) / blockValues) * byteSize;
  return {
    name: `${name} from ${firstRow}`,
    dtype,
    rows,
    columns,
    get planes() {
      return planeFields(dtype).map(({ byteSize }, i) => {
        const plane = matrix.planes[i];
        const offset = part(firstRow, byteSize);
        // Kernels read planes in whole words, and the first plane 16 bytes at a time.
        const isAligned = offset % (i === 0 ? 16 : 4) === 0;
        invariant(plane !== undefined && isAligned, `${name} cannot be cut at row ${firstRow}`);
        return subslice(plane, offset, part(rows, byteSize));
      });
    },
  };
}

/** Some values of a vector as a vector. */
export function valueRange(vector: Vector, first: number, length: number): Vector {
  const { name } = vector;
  invariant(first + length <= vector.length, `${name} has ${vector.length} values`);
  return {
    name: `${name} from ${first}`,
    length,
    get data() {
      return subslice(vector.data, first * 4, length * 4);
    },
  };
}

/** Rows must be whole blocks, and whole 16-byte words for the types without blocks. */
export function isComputable(dtype: DType, columns: number): boolean {
  return columns % Math.max(blockFormats[dtype].blockValues, 8) === 0;
}
