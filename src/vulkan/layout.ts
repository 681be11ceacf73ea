/**
 * The struct language: a C struct is declared once, in the order and with the names of the Vulkan
 * specification, and its size, offsets, writer, reader and TypeScript type all follow from that
 * declaration.
 *
 * Zero is the default of every field, because arena memory starts zeroed; only what differs is
 * written.
 */
import { invariant } from "../errors.ts";
import { roundUp } from "../math.ts";
import type { Address, Arena } from "./arena.ts";

/** How one member is stored. `In` is what may be written, `Out` what reading gives. */
export interface Field<In, Out = In> {
  readonly byteSize: number;
  readonly alignment: number;
  write(arena: Arena, at: number, value: In): void;
  read(arena: Arena, at: number): Out;
  /** Written whenever the struct is, such as sType. */
  readonly constant?: In;
  /** Names the list whose length this member holds. */
  readonly counts?: string;
}

// Members differ in both types. Methods are checked loosely enough for this; inference below gives
// each its own again.
type AnyField = Field<unknown, unknown>;
export type StructFields = Readonly<Record<string, AnyField>>;

export type Input<F extends StructFields> = {
  [K in keyof F]?: F[K] extends Field<infer In, infer _> ? In : never;
};
export type Output<F extends StructFields> = {
  [K in keyof F]: F[K] extends Field<infer _, infer Out> ? Out : never;
};

export interface Struct<F extends StructFields> extends Field<Input<F>, Output<F>> {
  readonly name: string;
  readonly fields: F;
  readonly offsets: Readonly<Record<keyof F & string, number>>;
}

/** A struct with C's rules of alignment and padding. */
export function struct<const F extends StructFields>(name: string, fields: F): Struct<F> {
  const offsets: Record<string, number> = {};
  let end = 0;
  let alignment = 1;
  for (const [key, field] of Object.entries(fields)) {
    offsets[key] = roundUp(end, field.alignment);
    end = offsets[key] + field.byteSize;
    alignment = Math.max(alignment, field.alignment);
  }
  const offsetOf = (key: string): number => {
    const offset = offsets[key];
    if (offset === undefined) throw new TypeError(`${name} has no member ${key}`);
    return offset;
  };
  return {
    name,
    fields,
    offsets: offsets as Record<keyof F & string, number>,
    byteSize: roundUp(end, alignment),
    alignment,
    write(arena, at, value) {
      for (const [key, field] of Object.entries(fields)) {
        if (field.constant !== undefined) field.write(arena, at + offsetOf(key), field.constant);
        if (field.counts === undefined) continue;
        const sibling = value[field.counts] as readonly unknown[] | undefined;
        if (sibling !== undefined) field.write(arena, at + offsetOf(key), sibling.length);
      }
      for (const [key, member] of Object.entries(value)) {
        if (member === undefined) continue;
        const offset = offsetOf(key);
        fields[key]?.write(arena, at + offset, member);
      }
    },
    read(arena, at) {
      const result: Record<string, unknown> = {};
      for (const [key, field] of Object.entries(fields)) {
        result[key] = field.read(arena, at + offsetOf(key));
      }
      return result as Output<F>;
    },
  };
}

export const u8: Field<number> = {
  byteSize: 1,
  alignment: 1,
  write: (arena, at, value) => arena.view.setUint8(at, value),
  read: (arena, at) => arena.view.getUint8(at),
};

export const u32: Field<number> = {
  byteSize: 4,
  alignment: 4,
  write: (arena, at, value) => arena.view.setUint32(at, value, true),
  read: (arena, at) => arena.view.getUint32(at, true),
};

export const i32: Field<number> = {
  byteSize: 4,
  alignment: 4,
  write: (arena, at, value) => arena.view.setInt32(at, value, true),
  read: (arena, at) => arena.view.getInt32(at, true),
};

export const f32: Field<number> = {
  byteSize: 4,
  alignment: 4,
  write: (arena, at, value) => arena.view.setFloat32(at, value, true),
  read: (arena, at) => arena.view.getFloat32(at, true),
};

/** VkBool32. */
export const bool32: Field<boolean> = {
  byteSize: 4,
  alignment: 4,
  write: (arena, at, value) => arena.view.setUint32(at, value ? 1 : 0, true),
  read: (arena, at) => arena.view.getUint32(at, true) !== 0,
};

/** VkDeviceSize and size_t. Reading rounds what exceeds 2^53, which only "unlimited" values do. */
export const size64: Field<number> = {
  byteSize: 8,
  alignment: 8,
  write(arena, at, value) {
    invariant(Number.isSafeInteger(value) && value >= 0, `not a size: ${value}`);
    arena.view.setBigUint64(at, BigInt(value), true);
  },
  read: (arena, at) => Number(arena.view.getBigUint64(at, true)),
};

/** A non-dispatchable handle or a device address: opaque 64 bits, often beyond 2^53. */
export const handle: Field<bigint> = {
  byteSize: 8,
  alignment: 8,
  write: (arena, at, value) => arena.view.setBigUint64(at, value, true),
  read: (arena, at) => arena.view.getBigUint64(at, true),
};

/** An address in this process, or a dispatchable handle. */
export const pointer: Field<Address | number | null, Address> = {
  byteSize: 8,
  alignment: 8,
  write: (arena, at, value) => arena.view.setBigUint64(at, BigInt(value ?? 0), true),
  read: (arena, at) => Number(arena.view.getBigUint64(at, true)) as Address,
};

/** `const char*`. */
export const cstring: Field<string, Address> = {
  byteSize: 8,
  alignment: 8,
  write: (arena, at, value) => pointer.write(arena, at, arena.putString(value)),
  read: pointer.read,
};

/** `char[byteSize]`, zero-terminated. */
export function chars(byteSize: number): Field<never, string> {
  return {
    byteSize,
    alignment: 1,
    write: () => invariant(false, "char arrays are only read"),
    read(arena, at) {
      const bytes = arena.bytes.subarray(at, at + byteSize);
      const end = bytes.indexOf(0);
      return new TextDecoder().decode(bytes.slice(0, end < 0 ? byteSize : end));
    },
  };
}

/** `uint8_t[byteSize]`. */
export function bytes(byteSize: number): Field<Uint8Array> {
  return {
    byteSize,
    alignment: 1,
    write: (arena, at, value) => arena.bytes.set(value, at),
    read: (arena, at) => arena.bytes.slice(at, at + byteSize),
  };
}

/** `T[count]`, in place. */
export function array<In, Out>(field: Field<In, Out>, count: number): Field<readonly In[], Out[]> {
  return {
    byteSize: field.byteSize * count,
    alignment: field.alignment,
    write: (arena, at, values) =>
      values.forEach((value, i) => field.write(arena, at + i * field.byteSize, value)),
    read: (arena, at) =>
      Array.from({ length: count }, (_, i) => field.read(arena, at + i * field.byteSize)),
  };
}

/** `const T*` to one struct. */
export function ref<F extends StructFields>(target: Struct<F>): Field<Input<F>, Address> {
  return {
    byteSize: 8,
    alignment: 8,
    write: (arena, at, value) => pointer.write(arena, at, arena.put(target, value)),
    read: pointer.read,
  };
}

/**
 * `const T*` to an array; an empty one is a null pointer. Its length goes to the `countOf` member.
 */
export function list<In>(field: Field<In, unknown>): Field<readonly In[], Address> {
  return {
    byteSize: 8,
    alignment: 8,
    write(arena, at, values) {
      if (values.length === 0) return;
      const offset = arena.allocate(field.byteSize * values.length, field.alignment);
      values.forEach((value, i) => field.write(arena, offset + i * field.byteSize, value));
      pointer.write(arena, at, arena.addressOf(offset));
    },
    read: pointer.read,
  };
}

/** The length of a sibling list. */
export function countOf(sibling: string): Field<number> {
  return { ...u32, counts: sibling };
}

/** A member that always has this value. */
export function constant(value: number): Field<number> {
  return { ...u32, constant: value };
}

/** The first two members of every extensible Vulkan struct. */
export function header(structureType: number): {
  readonly sType: Field<number>;
  readonly pNext: typeof pointer;
} {
  return { sType: constant(structureType), pNext: pointer };
}
