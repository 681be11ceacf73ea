/** Rows of a matrix as a matrix: where its planes lie. */
import { describe, expect, test } from "bun:test";
import { dtypes, type DType } from "../../src/tensor/dtype.ts";
import { planeLayout } from "../../src/tensor/planes.ts";
import { planesIn, rowRange, valueRange, type Matrix } from "../../src/tensor/tensor.ts";
import type { BufferSlice } from "../../src/vulkan/buffer.ts";

/** Nothing of it is touched. */
const buffer = {} as BufferSlice["buffer"];

function matrixOf(dtype: DType, rows: number, columns: number): Matrix {
  const { byteSize } = planeLayout(dtype, rows * columns);
  const planes = planesIn({ buffer, offset: 4096, byteSize }, dtype, rows * columns);
  return { name: "w", dtype, rows, columns, planes };
}

describe("rows of a matrix", () => {
  test.each(dtypes)("of %s lie where as many rows before them end", (dtype) => {
    const whole = matrixOf(dtype, 40, 256);
    const part = rowRange(whole, 8, 16);
    expect(part).toMatchObject({ dtype, rows: 16, columns: 256 });
    const before = planeLayout(dtype, 8 * 256).planes;
    const own = planeLayout(dtype, 16 * 256).planes;
    expect(part.planes.map(({ offset, byteSize }) => ({ offset, byteSize }))).toEqual(
      whole.planes.map(({ offset }, i) => ({
        offset: offset + (before[i]?.byteSize ?? 0),
        byteSize: own[i]?.byteSize ?? 0,
      })),
    );
  });

  test("that end with the matrix are allowed, and those beyond it are not", () => {
    const whole = matrixOf("Q8_0", 40, 256);
    expect(rowRange(whole, 24, 16).rows).toBe(16);
    expect(() => rowRange(whole, 25, 16)).toThrow("w has 40 rows");
  });

  test("that would not begin with a whole word are refused when they are used", () => {
    const part = rowRange(matrixOf("Q6_K", 8, 256), 1, 2);
    expect(() => part.planes).toThrow("w cannot be cut at row 1");
  });

  test("are not asked for before the matrix is loaded", () => {
    const whole: Matrix = {
      name: "w",
      dtype: "F32",
      rows: 4,
      columns: 8,
      get planes(): never {
        throw new Error("too early");
      },
    };
    const part = rowRange(whole, 1, 2);
    expect(part.rows).toBe(2);
    expect(() => part.planes).toThrow("too early");
  });
});

test("values of a vector are a part of its floats", () => {
  const data = { buffer, offset: 64, byteSize: 400 };
  const part = valueRange({ name: "b", length: 100, data }, 20, 30);
  expect(part.length).toBe(30);
  expect(part.data).toEqual({ buffer, offset: 144, byteSize: 120 });
  expect(() => valueRange({ name: "b", length: 100, data }, 80, 30)).toThrow("b has 100 values");
});
