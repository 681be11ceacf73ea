/**
 * The key–value pairs of a GGUF file, read with the type that the reader expects. A value of
 * another type is a bad file; a missing one is `undefined`, and the caller decides.
 */
import type { UserError } from "../errors.ts";
import { badFile } from "./bad-file.ts";

/** Strings of an array, kept as bytes until asked for: vocabularies hold hundreds of thousands. */
export interface StringArray {
  readonly length: number;
  /** Decoded as UTF-8; bytes that are not UTF-8 become U+FFFD. */
  at(index: number): string;
  /** The bytes as they stand in the file. */
  bytesAt(index: number): Uint8Array;
}

/** Types whose values a JavaScript number holds exactly. */
type NumberType = "u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "f32" | "f64";

/** A numeric or boolean array; booleans are 0 and 1. 64-bit integers stay exact. */
export interface NumberArray {
  readonly elementType: NumberType | "bool" | "u64" | "i64";
  readonly values: ArrayLike<number> | BigUint64Array | BigInt64Array;
}

export type GgufValue =
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "u64" | "i64"; readonly value: bigint }
  | { readonly type: NumberType; readonly value: number }
  | { readonly type: "strings"; readonly value: StringArray }
  | { readonly type: "numbers"; readonly value: NumberArray };

export class Metadata {
  readonly #pairs: ReadonlyMap<string, GgufValue>;
  readonly #fileName: string;

  /** `fileName` is for messages. */
  constructor(pairs: ReadonlyMap<string, GgufValue>, fileName = "the model") {
    this.#pairs = pairs;
    this.#fileName = fileName;
  }

  has(key: string): boolean {
    return this.#pairs.has(key);
  }

  entries(): IterableIterator<[string, GgufValue]> {
    return this.#pairs.entries();
  }

  get(key: string): GgufValue | undefined {
    return this.#pairs.get(key);
  }

  string(key: string): string | undefined {
    const found = this.#pairs.get(key);
    if (found === undefined) return undefined;
    if (found.type !== "string") throw this.#wrongType(key, "a string", found);
    return found.value;
  }

  boolean(key: string): boolean | undefined {
    const found = this.#pairs.get(key);
    if (found === undefined) return undefined;
    if (found.type !== "bool") throw this.#wrongType(key, "true or false", found);
    return found.value;
  }

  /** Any numeric type; a 64-bit integer beyond 2^53 is a bad file. */
  number(key: string): number | undefined {
    const found = this.#pairs.get(key);
    if (found === undefined) return undefined;
    if (typeof found.value === "number") return found.value;
    if (typeof found.value !== "bigint") throw this.#wrongType(key, "a number", found);
    const value = Number(found.value);
    if (!Number.isSafeInteger(value)) throw this.#outOfRange(key, found.value);
    return value;
  }

  /** A non-negative integer of any integer type; a float or a negative number is a bad file. */
  count(key: string): number | undefined {
    const found = this.#pairs.get(key);
    if (found?.type === "f32" || found?.type === "f64") {
      throw this.#wrongType(key, "an integer", found);
    }
    const value = this.number(key);
    if (value === undefined) return undefined;
    if (!Number.isSafeInteger(value) || value < 0) throw this.#outOfRange(key, value);
    return value;
  }

  strings(key: string): StringArray | undefined {
    const found = this.#pairs.get(key);
    if (found === undefined) return undefined;
    if (found.type !== "strings") throw this.#wrongType(key, "an array of strings", found);
    return found.value;
  }

  /** A numeric array of any element type, as numbers. */
  numbers(key: string): ArrayLike<number> | undefined {
    const found = this.#pairs.get(key);
    if (found === undefined) return undefined;
    if (found.type !== "numbers") throw this.#wrongType(key, "an array of numbers", found);
    const { values } = found.value;
    if (!(values instanceof BigUint64Array || values instanceof BigInt64Array)) return values;
    return Array.from(values as ArrayLike<bigint>, (value) => {
      if (!Number.isSafeInteger(Number(value))) throw this.#outOfRange(key, value);
      return Number(value);
    });
  }

  /** As `numbers`, of any integer type: an array of floats or booleans is a bad file. */
  integers(key: string): ArrayLike<number> | undefined {
    const found = this.#pairs.get(key);
    if (found?.type === "numbers" && !isInteger(found.value.elementType)) {
      throw this.#wrongType(key, "an array of integers", found);
    }
    return this.numbers(key);
  }

  /** As `numbers`, of f32 or f64: an array of integers is a bad file. */
  floats(key: string): ArrayLike<number> | undefined {
    const found = this.#pairs.get(key);
    if (found?.type === "numbers" && !isFloat(found.value.elementType)) {
      throw this.#wrongType(key, "an array of floats", found);
    }
    return this.numbers(key);
  }

  #wrongType(key: string, expected: string, found: GgufValue): UserError {
    const type = describeType(found);
    return badFile(this.#fileName, `metadata ${key} must be ${expected} and is ${type}`);
  }

  #outOfRange(key: string, value: number | bigint): UserError {
    return badFile(this.#fileName, `metadata ${key} is out of range: ${value}`);
  }
}

function isFloat(type: NumberArray["elementType"]): boolean {
  return type === "f32" || type === "f64";
}

function isInteger(type: NumberArray["elementType"]): boolean {
  return type !== "bool" && !isFloat(type);
}

/** "u32", "an array of f32": for messages. */
export function describeType(value: GgufValue): string {
  if (value.type === "strings") return "an array of strings";
  return value.type === "numbers" ? `an array of ${value.value.elementType}` : value.type;
}
