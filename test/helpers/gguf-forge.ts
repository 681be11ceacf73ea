/**
 * Builds GGUF files in memory, byte for byte, valid unless told otherwise: every field has a knob
 * that breaks it. Written from the specification, apart from the reader it tests.
 */
import { blockFormats, byteSize, type DType } from "../../src/tensor/dtype.ts";

const valueTypeIds = {
  u8: 0,
  i8: 1,
  u16: 2,
  i16: 3,
  u32: 4,
  i32: 5,
  f32: 6,
  bool: 7,
  string: 8,
  array: 9,
  u64: 10,
  i64: 11,
  f64: 12,
} as const;

type ScalarType = Exclude<keyof typeof valueTypeIds, "string" | "array">;
type Text = string | Uint8Array;

/** A metadata value as a function that writes its type and bytes. */
export type ForgedValue = (writer: ByteWriter) => void;

export interface ForgedTensor {
  readonly name: Text;
  /** dims[0] is the row length. */
  readonly dims: readonly (number | bigint)[];
  readonly type: DType | number;
  /** Zeros if absent. */
  readonly bytes?: Uint8Array;
  /** Instead of the number of dims. */
  readonly dimCount?: number;
  /** Instead of the next free offset. */
  readonly offset?: number | bigint;
}

export interface ForgedFile {
  readonly magic?: string;
  readonly version?: number;
  readonly bigEndian?: boolean;
  readonly pairs?: readonly (readonly [key: Text, value: ForgedValue])[];
  readonly tensors?: readonly ForgedTensor[];
  /** Instead of the true counts. */
  readonly pairCount?: number | bigint;
  readonly tensorCount?: number | bigint;
  /** Where tensors are put; does not write `general.alignment`. */
  readonly alignment?: number;
}

/** The bytes of a file. The last tensor is not padded, so the file ends with its last byte. */
export function forgeGguf(file: ForgedFile): Uint8Array<ArrayBuffer> {
  const { magic = "GGUF", version = 3, pairs = [], tensors = [], alignment = 32 } = file;
  const writer = new ByteWriter(version === 1, file.bigEndian !== true);
  writer.bytes(new TextEncoder().encode(magic));
  writer.u32(version);
  writer.count(file.tensorCount ?? tensors.length);
  writer.count(file.pairCount ?? pairs.length);
  for (const [key, value] of pairs) {
    writer.text(key);
    value(writer);
  }
  let free = 0;
  const offsets = tensors.map((tensor) => {
    const offset = Number(tensor.offset ?? free);
    free = Math.ceil((offset + tensorBytes(tensor).length) / alignment) * alignment;
    return offset;
  });
  for (const [i, tensor] of tensors.entries()) {
    writer.text(tensor.name);
    writer.u32(tensor.dimCount ?? tensor.dims.length);
    for (const dim of tensor.dims) writer.count(dim);
    writer.u32(typeId(tensor.type));
    writer.scalar("u64", tensor.offset ?? offsets[i] ?? 0);
  }
  if (tensors.length > 0) writer.pad(alignment);
  const dataStart = writer.length;
  for (const [i, tensor] of tensors.entries()) {
    const start = dataStart + (offsets[i] ?? 0);
    // Offsets that break a file on purpose may lie far out or on other tensors: nothing is written
    // there.
    if (start < writer.length || start > writer.length + 4096) continue;
    writer.zeros(start - writer.length);
    writer.bytes(tensorBytes(tensor));
  }
  return writer.finish();
}

/**
 * Parts of a split model: the pairs in the first, `tensors[i]` in part i, `split.*` keys in all.
 */
export function forgeSplit(
  pairs: ForgedFile["pairs"],
  tensors: readonly (readonly ForgedTensor[])[],
): Uint8Array<ArrayBuffer>[] {
  return tensors.map((own, i) =>
    forgeGguf({
      pairs: [
        ...(i === 0 ? (pairs ?? []) : []),
        ...splitPairs(i, tensors.length, tensors.flat().length),
      ],
      tensors: own,
    }),
  );
}

/** The three keys of a part; `index` counts from 0. */
export function splitPairs(
  index: number,
  count: number,
  tensorCount: number,
): (readonly [string, ForgedValue])[] {
  return [
    ["split.no", scalar("u16", index)],
    ["split.count", scalar("u16", count)],
    ["split.tensors.count", scalar("i32", tensorCount)],
  ];
}

export function scalar(type: ScalarType, value: number | bigint | boolean): ForgedValue {
  return (writer) => {
    writer.u32(valueTypeIds[type]);
    writer.scalar(type, value);
  };
}

/** `length` instead of the true one. */
export function text(value: Text, length?: number | bigint): ForgedValue {
  return (writer) => {
    writer.u32(valueTypeIds.string);
    writer.text(value, length);
  };
}

/** `count` instead of the true one. */
export function texts(values: readonly Text[], count?: number | bigint): ForgedValue {
  return (writer) => {
    writer.u32(valueTypeIds.array);
    writer.u32(valueTypeIds.string);
    writer.count(count ?? values.length);
    for (const value of values) writer.text(value);
  };
}

/** `count` instead of the true one. */
export function numbers(
  type: ScalarType,
  values: readonly (number | bigint | boolean)[],
  count?: number | bigint,
): ForgedValue {
  return (writer) => {
    writer.u32(valueTypeIds.array);
    writer.u32(valueTypeIds[type]);
    writer.count(count ?? values.length);
    for (const value of values) writer.scalar(type, value);
  };
}

/** Any u32 words in place of type and value. */
export function words(...values: number[]): ForgedValue {
  return (writer) => {
    for (const value of values) writer.u32(value);
  };
}

function typeId(type: DType | number): number {
  return typeof type === "number" ? type : blockFormats[type].id;
}

function tensorBytes(tensor: ForgedTensor): Uint8Array {
  if (tensor.bytes !== undefined) return tensor.bytes;
  if (typeof tensor.type === "number") return new Uint8Array(32);
  const valueCount = tensor.dims.reduce<number>((n, dim) => n * Number(dim), 1);
  const size = byteSize(tensor.type, valueCount);
  return new Uint8Array(size >= 0 && size <= 2 ** 26 ? Math.floor(size) : 32);
}

const setters = {
  u8: (view, at, v) => view.setUint8(at, Number(v)),
  i8: (view, at, v) => view.setInt8(at, Number(v)),
  bool: (view, at, v) => view.setUint8(at, Number(v)),
  u16: (view, at, v, little) => view.setUint16(at, Number(v), little),
  i16: (view, at, v, little) => view.setInt16(at, Number(v), little),
  u32: (view, at, v, little) => view.setUint32(at, Number(v), little),
  i32: (view, at, v, little) => view.setInt32(at, Number(v), little),
  f32: (view, at, v, little) => view.setFloat32(at, Number(v), little),
  f64: (view, at, v, little) => view.setFloat64(at, Number(v), little),
  u64: (view, at, v, little) => view.setBigUint64(at, BigInt(v), little),
  i64: (view, at, v, little) => view.setBigInt64(at, BigInt(v), little),
} as const satisfies Record<
  ScalarType,
  (view: DataView, at: number, value: number | bigint | boolean, little: boolean) => void
>;

const scalarBytes = {
  u8: 1,
  i8: 1,
  bool: 1,
  u16: 2,
  i16: 2,
  u32: 4,
  i32: 4,
  f32: 4,
  f64: 8,
  u64: 8,
  i64: 8,
} as const satisfies Record<ScalarType, number>;

/** Bytes that grow at their end. */
export class ByteWriter {
  #bytes = new Uint8Array(1024);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;
  readonly #shortCounts: boolean;
  readonly #littleEndian: boolean;

  constructor(shortCounts: boolean, littleEndian: boolean) {
    this.#shortCounts = shortCounts;
    this.#littleEndian = littleEndian;
  }

  get length(): number {
    return this.#length;
  }

  u32(value: number): void {
    this.scalar("u32", value);
  }

  /** 32 bits wide in version 1, else 64. */
  count(value: number | bigint): void {
    this.scalar(this.#shortCounts ? "u32" : "u64", value);
  }

  scalar(type: ScalarType, value: number | bigint | boolean): void {
    const at = this.#grow(scalarBytes[type]);
    setters[type](this.#view, at, value, this.#littleEndian);
  }

  text(value: Text, length?: number | bigint): void {
    const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
    this.count(length ?? bytes.length);
    this.bytes(bytes);
  }

  bytes(bytes: Uint8Array): void {
    const at = this.#grow(bytes.length);
    this.#bytes.set(bytes, at);
  }

  zeros(count: number): void {
    this.#grow(count);
  }

  pad(alignment: number): void {
    this.zeros((alignment - (this.#length % alignment)) % alignment);
  }

  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }

  #grow(count: number): number {
    const at = this.#length;
    this.#length += count;
    if (this.#length > this.#bytes.length) {
      const bytes = new Uint8Array(2 * this.#length);
      bytes.set(this.#bytes);
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer);
    }
    return at;
  }
}
