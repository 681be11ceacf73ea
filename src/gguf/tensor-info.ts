/** The tensor table of a header: reads every entry and checks it before anything relies on it. */
import { product, roundUp } from "../math.ts";
import { dtypeOfId, type DType } from "../tensor/dtype.ts";
import { badFile, digits, truncatedFile } from "./bad-file.ts";
import type { Cursor } from "./cursor.ts";
import { limits } from "./limits.ts";
import { blockSizeOfId, typeNameOfId } from "./tensor-type.ts";
import { readName } from "./text.ts";

/** Where a tensor lies and what it is made of. */
export interface TensorInfo {
  readonly name: string;
  /** One to four, each at least 1; dims[0] is the length of a row, whose values are contiguous. */
  readonly dims: readonly number[];
  /** The product of the dims. */
  readonly valueCount: number;
  /** GGML's id of the type. */
  readonly typeId: number;
  /** "Q4_K"; also for types that zinc does not compute with; "type 199" for unknown ids. */
  readonly typeName: string;
  /** Undefined if zinc does not compute with the type: see `requireDType`. */
  readonly dtype: DType | undefined;
  /** Index of the file (the part of a split model) that holds the tensor. */
  readonly fileIndex: number;
  /** From the start of that file. */
  readonly offsetBytes: number;
  /** Undefined if the type is unknown. */
  readonly sizeBytes: number | undefined;
}

/** Bytes of the shortest entry: a name of one byte, one dimension. */
export function minTensorInfoBytes(countBytes: 4 | 8): number {
  return countBytes + 1 + 4 + countBytes + 4 + 8;
}

/**
 * Reads `count` entries, which end the header, and places them in the data section behind it.
 * Offsets in the result are absolute. `fileSizeBytes` is that of the whole source.
 */
export function readTensorInfos(
  cursor: Cursor,
  count: number,
  alignmentBytes: number,
  fileSizeBytes: number,
): TensorInfo[] {
  const tensors: TensorInfo[] = [];
  const names = new Set<string>();
  for (let i = 0; i < count; i++) {
    const tensor = readTensorInfo(cursor, i);
    const { name, offsetBytes } = tensor;
    if (names.has(name)) throw badFile(cursor.name, `tensor ${name} is listed twice`);
    if (offsetBytes % alignmentBytes !== 0) {
      const problem = `has offset ${offsetBytes}, not a multiple of ${alignmentBytes}`;
      throw badFile(cursor.name, `tensor ${name} ${problem}`);
    }
    names.add(name);
    tensors.push(tensor);
  }
  const dataOffset = roundUp(cursor.offset, alignmentBytes);
  const placed = tensors.map((t) => ({ ...t, offsetBytes: dataOffset + t.offsetBytes }));
  checkEnds(placed, cursor.name, fileSizeBytes);
  checkOverlaps(placed, cursor.name);
  return placed;
}

/** One entry; its offset is still relative to the data section. */
function readTensorInfo(cursor: Cursor, index: number): TensorInfo {
  const name = readName(cursor, limits.nameBytes, `the name of tensor ${index}`);
  const dims = readDims(cursor, name);
  const typeId = cursor.u32();
  const offsetBytes = cursor.size();
  if (!Number.isSafeInteger(offsetBytes)) {
    const problem = `has offset ${digits(offsetBytes)}, which no file reaches`;
    throw badFile(cursor.name, `tensor ${name} ${problem}`);
  }
  const typeName = typeNameOfId(typeId);
  const sizeBytes = sizeOf(cursor, name, dims, typeId, typeName);
  const dtype = dtypeOfId(typeId);
  const valueCount = product(dims);
  return { name, dims, valueCount, typeId, typeName, dtype, fileIndex: 0, offsetBytes, sizeBytes };
}

function readDims(cursor: Cursor, name: string): number[] {
  const dimCount = cursor.u32();
  if (dimCount === 0 || dimCount > limits.dims) {
    const problem = `has ${dimCount} dimensions, not 1 to ${limits.dims}`;
    throw badFile(cursor.name, `tensor ${name} ${problem}`);
  }
  const dims: number[] = [];
  for (let i = 0; i < dimCount; i++) dims.push(cursor.count());
  const shape = `[${dims.map(digits).join(", ")}]`;
  const empty = dims.indexOf(0);
  if (empty >= 0) {
    throw badFile(cursor.name, `tensor ${name} has the shape ${shape}: dimension ${empty} is 0`);
  }
  if (!Number.isSafeInteger(product(dims))) {
    throw badFile(cursor.name, `tensor ${name} has the shape ${shape}, which is too large`);
  }
  return dims;
}

function sizeOf(
  cursor: Cursor,
  name: string,
  dims: readonly number[],
  typeId: number,
  typeName: string,
): number | undefined {
  const block = blockSizeOfId(typeId);
  if (block === undefined) return undefined;
  const rowLength = dims[0] ?? 0;
  if (rowLength % block.blockValues !== 0) {
    const problem = `not whole ${typeName} blocks of ${block.blockValues}`;
    throw badFile(cursor.name, `tensor ${name} has rows of ${rowLength} values, ${problem}`);
  }
  const sizeBytes = (product(dims) / block.blockValues) * block.blockBytes;
  if (!Number.isSafeInteger(sizeBytes)) {
    throw badFile(cursor.name, `tensor ${name} has ${digits(sizeBytes)} bytes, which no file has`);
  }
  return sizeBytes;
}

/** Looks for the tensor that ends last, so that the message says how much is missing in all. */
function checkEnds(tensors: readonly TensorInfo[], fileName: string, fileSizeBytes: number): void {
  let last = 0;
  for (const tensor of tensors) last = Math.max(last, endOf(tensor));
  if (last > fileSizeBytes) throw truncatedFile(fileName, last, fileSizeBytes, false);
}

function checkOverlaps(tensors: readonly TensorInfo[], fileName: string): void {
  const sorted = tensors.toSorted((a, b) => a.offsetBytes - b.offsetBytes);
  let before: TensorInfo | undefined;
  for (const tensor of sorted) {
    if (before !== undefined && endOf(before) > tensor.offsetBytes) {
      throw badFile(fileName, `tensors ${before.name} and ${tensor.name} overlap`);
    }
    before = tensor;
  }
}

/** A tensor of unknown size counts as empty. */
function endOf(tensor: TensorInfo): number {
  return tensor.offsetBytes + (tensor.sizeBytes ?? 0);
}
