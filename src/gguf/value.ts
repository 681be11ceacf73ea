/** One metadata value: its type, then its bytes. Arrays of arrays are refused: no model has any. */
import { badFile, digits } from "./bad-file.ts";
import type { Cursor } from "./cursor.ts";
import { limits } from "./limits.ts";
import type { GgufValue, NumberArray } from "./metadata.ts";
import { readStringArray } from "./string-array.ts";
import { readText } from "./text.ts";

/** In the order of their ids. */
const valueTypes = [
  "u8",
  "i8",
  "u16",
  "i16",
  "u32",
  "i32",
  "f32",
  "bool",
  "string",
  "array",
  "u64",
  "i64",
  "f64",
] as const;

type ElementType = NumberArray["elementType"];

const typedArrays = {
  u8: Uint8Array,
  i8: Int8Array,
  u16: Uint16Array,
  i16: Int16Array,
  u32: Uint32Array,
  i32: Int32Array,
  f32: Float32Array,
  bool: Uint8Array,
  u64: BigUint64Array,
  i64: BigInt64Array,
  f64: Float64Array,
} as const satisfies Record<ElementType, unknown>;

/** Reads the type and the value of metadata `key`. */
export function readValue(cursor: Cursor, key: string): GgufValue {
  const type = readValueType(cursor, `metadata ${key}`);
  switch (type) {
    case "array":
      return readArray(cursor, key);
    case "string":
      return { type, value: readText(cursor, limits.stringBytes, `the text of metadata ${key}`) };
    case "bool":
      return { type, value: readBoolean(cursor, key) };
    case "u64":
    case "i64":
      return { type, value: cursor[type]() };
    default:
      return { type, value: cursor[type]() };
  }
}

function readValueType(cursor: Cursor, subject: string): (typeof valueTypes)[number] {
  const id = cursor.u32();
  const type = valueTypes[id];
  if (type === undefined) {
    throw badFile(cursor.name, `${subject} has value type ${id}; known are 0 to 12`);
  }
  return type;
}

function readBoolean(cursor: Cursor, key: string): boolean {
  const byte = cursor.u8();
  if (byte > 1) throw badFile(cursor.name, `metadata ${key} must be 0 or 1 and is ${byte}`);
  return byte === 1;
}

function readArray(cursor: Cursor, key: string): GgufValue {
  const type = readValueType(cursor, `the elements of metadata ${key}`);
  if (type === "array") {
    throw badFile(cursor.name, `metadata ${key} is an array of arrays, which zinc does not read`);
  }
  const count = cursor.count();
  if (count > limits.arrayElements) {
    const claim = `an array of ${digits(count)} elements, more than ${limits.arrayElements}`;
    throw badFile(cursor.name, `metadata ${key} claims ${claim}`);
  }
  if (type === "string") {
    cursor.ensure(count * cursor.countBytes);
    const value = readStringArray(cursor, count, `a string of metadata ${key}`);
    return { type: "strings", value };
  }
  return { type: "numbers", value: readNumbers(cursor, key, type, count) };
}

function readNumbers(
  cursor: Cursor,
  key: string,
  elementType: ElementType,
  count: number,
): NumberArray {
  const TypedArray = typedArrays[elementType];
  const byteCount = count * TypedArray.BYTES_PER_ELEMENT;
  const start = cursor.skip(byteCount);
  // A copy, because elements need not be aligned in the file.
  const values = new TypedArray(cursor.pieces.copy(start, cursor.offset).buffer);
  if (elementType === "bool" && (values as Uint8Array).some((byte) => byte > 1)) {
    throw badFile(cursor.name, `metadata ${key} must hold only 0 and 1`);
  }
  return { elementType, values };
}
