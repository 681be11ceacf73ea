/**
 * The weights that a model asks for: declared by name and shape first, so that everything missing
 * is reported at once and memory is planned before any is taken; filled when the file is loaded.
 */
import { invariant, UserError } from "../errors.ts";
import type { GgufFile } from "../gguf/file.ts";
import type { TensorInfo } from "../gguf/tensor-info.ts";
import { dequantize } from "../tensor/dequantize.ts";
import type { DType } from "../tensor/dtype.ts";
import { planeLayout } from "../tensor/planes.ts";
import {
  isComputable,
  planesIn,
  rowRange,
  valueRange,
  type Matrix,
  type Vector,
} from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import type { Piece } from "../vulkan/memory.ts";

/** A declared tensor: where it lies in the file and how it will lie on the device. */
export interface DeclaredWeight {
  readonly tensor: TensorInfo;
  readonly dtype: DType;
  readonly kind: "matrix" | "vector";
  /** On the device. */
  readonly byteSize: number;
  /** Experts that share the tensor evenly; 1 for what every row needs. */
  readonly experts: number;
  place(slice: BufferSlice): void;
}

export class Weights {
  readonly #file: GgufFile;
  readonly #declared = new Map<string, DeclaredWeight & { readonly value: Matrix | Vector }>();
  readonly #problems: string[] = [];

  constructor(file: GgufFile) {
    this.#file = file;
  }

  get file(): GgufFile {
    return this.#file;
  }

  has(name: string): boolean {
    return this.#file.tensor(name) !== undefined;
  }

  /** W of y = W · x with these dimensions. */
  matrix(name: string, rows: number, columns: number): Matrix {
    return this.#matrix(name, rows, columns, 1);
  }

  /** The matrices of all experts as one of experts · rows rows, expert behind expert. */
  experts(name: string, experts: number, rows: number, columns: number): Matrix {
    return this.#matrix(name, rows, columns, experts);
  }

  /** Rows of a matrix that holds those of several: `total` in all. */
  matrixRows(name: string, total: number, columns: number, first: number, rows: number): Matrix {
    const whole = this.matrix(name, total, columns);
    return whole.rows === 0 ? whole : rowRange(whole, first, rows);
  }

  /** `dims`: those of the tensor, if its values stand in a table. */
  vector(name: string, length: number, dims: readonly number[] = [length]): Vector {
    const known = this.#declared.get(name);
    if (known !== undefined) return known.value as Vector;
    const tensor = this.#find(name, dims);
    if (tensor === undefined) return missingVector(name);
    let data: BufferSlice | undefined;
    const value: Vector = {
      name,
      length,
      get data() {
        invariant(data !== undefined, `${name} is not loaded`);
        return data;
      },
    };
    this.#declared.set(name, {
      tensor,
      value,
      dtype: this.#file.dtypeOf(tensor),
      kind: "vector",
      experts: 1,
      byteSize: length * 4,
      place: (slice) => {
        data = slice;
      },
    });
    return value;
  }

  optionalVector(name: string, length: number, dims?: readonly number[]): Vector | undefined {
    return this.has(name) ? this.vector(name, length, dims) : undefined;
  }

  /** As `matrixRows`, of an optional vector. */
  vectorValues(name: string, total: number, first: number, length: number): Vector | undefined {
    const whole = this.optionalVector(name, total);
    return whole === undefined || whole.length === 0 ? whole : valueRange(whole, first, length);
  }

  /** Bytes on the device of all weights that were declared so far. */
  get byteSize(): number {
    return [...this.#declared.values()].reduce((sum, { byteSize }) => sum + byteSize, 0);
  }

  /** Of these bytes, what one row needs if it goes to so many experts. */
  activeByteSize(expertsUsed: number): number {
    return [...this.#declared.values()].reduce(
      (sum, { byteSize, experts }) => sum + byteSize * Math.min(1, expertsUsed / experts),
      0,
    );
  }

  /** Bytes on the device of one declared weight; 0 if there is none of that name. */
  byteSizeOf(name: string): number {
    return this.#declared.get(name)?.byteSize ?? 0;
  }

  /** All declared weights, in the order of the file. Throws if any is missing or misshapen. */
  declared(): readonly DeclaredWeight[] {
    if (this.#problems.length > 0) {
      const shown = this.#problems.slice(0, 5).join(", ");
      const more = this.#problems.length > 5 ? ` and ${this.#problems.length - 5} more` : "";
      throw new UserError(
        "model",
        `${this.#file.fileNames[0]}: ${shown}${more}`,
        "the file is damaged or of another kind than it says; download it again",
      );
    }
    return [...this.#declared.values()].toSorted(
      (a, b) =>
        a.tensor.fileIndex - b.tensor.fileIndex || a.tensor.offsetBytes - b.tensor.offsetBytes,
    );
  }

  #matrix(name: string, expertRows: number, columns: number, experts: number): Matrix {
    const known = this.#declared.get(name);
    if (known !== undefined) return known.value as Matrix;
    const dims = experts === 1 ? [columns, expertRows] : [columns, expertRows, experts];
    const tensor = this.#find(name, dims);
    if (tensor === undefined) return missingMatrix(name);
    const rows = experts * expertRows;
    const dtype = this.#file.dtypeOf(tensor);
    if (!isComputable(dtype, columns)) {
      this.#problems.push(`${name} has rows of ${columns} ${dtype} values`);
    }
    let planes: readonly BufferSlice[] | undefined;
    const value: Matrix = {
      name,
      dtype,
      rows,
      columns,
      get planes() {
        invariant(planes !== undefined, `${name} is not loaded`);
        return planes;
      },
    };
    this.#declared.set(name, {
      tensor,
      dtype,
      value,
      kind: "matrix",
      experts,
      byteSize: planeLayout(dtype, tensor.valueCount).byteSize,
      place: (slice) => {
        planes = planesIn(slice, dtype, tensor.valueCount);
      },
    });
    return value;
  }

  #find(name: string, dims: readonly number[]): TensorInfo | undefined {
    const tensor = this.#file.tensor(name);
    if (tensor === undefined) {
      this.#problems.push(`tensor ${name} is missing`);
      return undefined;
    }
    const matches =
      dims.every((dim, i) => (tensor.dims[i] ?? 1) === dim) &&
      tensor.dims.slice(dims.length).every((d) => d === 1);
    if (matches) return tensor;
    this.#problems.push(
      `tensor ${name} is [${tensor.dims.join(", ")}] and should be [${dims.join(", ")}]`,
    );
    return undefined;
  }
}

/** The values of a small tensor, now; undefined if the file has none of that name. */
export function tensorValues(file: GgufFile, name: string): Float32Array | undefined {
  const tensor = file.tensor(name);
  if (tensor === undefined) return undefined;
  return dequantize(file.dtypeOf(tensor), file.readTensorSync(tensor));
}

/** Pieces of device memory for weights, in their order. */
export function weightPieces(declared: readonly DeclaredWeight[]): Piece[] {
  return declared.map(({ tensor, byteSize }) => ({ label: tensor.name, byteSize }));
}

/** Stand-ins until `declared` reports what is missing. */
function missingMatrix(name: string): Matrix {
  return { name, dtype: "F32", rows: 0, columns: 0, planes: [] };
}

function missingVector(name: string): Vector {
  return {
    name,
    length: 0,
    get data(): BufferSlice {
      throw new RangeError(`${name} is missing`);
    },
  };
}
