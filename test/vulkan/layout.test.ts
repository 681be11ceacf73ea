/** The struct language: where members lie, what is written, what is read back. */
import { describe, expect, expectTypeOf, test } from "bun:test";
import { Arena } from "../../src/vulkan/arena.ts";
import {
  array,
  bool32,
  bytes,
  chars,
  constant,
  countOf,
  cstring,
  f32,
  handle,
  header,
  i32,
  list,
  pointer,
  ref,
  size64,
  struct,
  u32,
  u8,
  type Input,
} from "../../src/vulkan/layout.ts";

const Inner = struct("Inner", { tag: u8, value: u32 });

/** The bytes of a struct in a fresh arena, in groups of four. */
function bytesOf<F extends Parameters<typeof struct>[1]>(
  type: ReturnType<typeof struct<F>>,
  value: Input<F>,
): string {
  const arena = new Arena(4096);
  const { offset } = arena.place(type, value);
  const hex = Buffer.from(arena.bytes.subarray(offset, offset + type.byteSize)).toString("hex");
  return hex.replace(/(.{8})(?=.)/g, "$1 ");
}

describe("offsets", () => {
  test("follow C: each member at a multiple of its alignment, the whole of the largest", () => {
    const Mixed = struct("Mixed", { a: u8, b: u32, c: u8, d: handle, e: u8 });
    expect(Mixed.offsets).toEqual({ a: 0, b: 4, c: 8, d: 16, e: 24 });
    expect([Mixed.byteSize, Mixed.alignment]).toEqual([32, 8]);
  });

  test("of a struct in a struct, and of arrays in place", () => {
    const Outer = struct("Outer", { a: u8, inner: Inner, many: array(Inner, 3), last: u8 });
    expect(Outer.offsets).toEqual({ a: 0, inner: 4, many: 12, last: 36 });
    expect(Outer.byteSize).toBe(40);
  });

  test("of an empty struct", () => {
    expect(struct("Empty", {}).byteSize).toBe(0);
  });
});

describe("writing", () => {
  test("leaves out nothing but zeros", () => {
    const Plain = struct("Plain", { a: u32, b: i32, c: f32, d: bool32, e: size64 });
    expect(bytesOf(Plain, {})).toBe("00000000 00000000 00000000 00000000 00000000 00000000");
    expect(bytesOf(Plain, { a: 0x01020304, b: -2, c: 1, d: true, e: 2 ** 40 })).toBe(
      "04030201 feffffff 0000803f 01000000 00000000 00010000",
    );
  });

  test("puts a struct into a struct", () => {
    const Outer = struct("Outer", { inner: Inner, many: array(Inner, 2) });
    expect(bytesOf(Outer, { inner: { value: 7 }, many: [{ tag: 1 }, { value: 9 }] })).toBe(
      "00000000 07000000 01000000 00000000 00000000 09000000",
    );
  });

  test("sets sType and other constants, also of nested structs that are given", () => {
    const Typed = struct("Typed", { ...header(42), flags: u32 });
    const Outer = struct("Outer", { head: constant(5), typed: Typed });
    expect(bytesOf(Typed, {})).toBe("2a000000 00000000 00000000 00000000 00000000 00000000");
    expect(bytesOf(Outer, { typed: { flags: 1 } })).toStartWith("05000000 00000000 2a000000");
  });

  test("counts the lists, and points to them", () => {
    const Holder = struct("Holder", { count: countOf("items"), items: list(Inner) });
    const arena = new Arena(4096);
    const { offset, read } = arena.place(Holder, { items: [{ value: 1 }, { value: 2 }] });
    const start = arena.addressOf(0);
    expect(read().count).toBe(2);
    const at = Number(read().items) - Number(start);
    expect(at).toBeGreaterThanOrEqual(offset + Holder.byteSize);
    expect([arena.view.getUint32(at + 4, true), arena.view.getUint32(at + 12, true)]).toEqual([
      1, 2,
    ]);
  });

  test("makes an empty list a null pointer, and a missing one, too", () => {
    const Holder = struct("Holder", { count: countOf("items"), items: list(u32) });
    expect(bytesOf(Holder, { items: [] })).toBe("00000000 00000000 00000000 00000000");
    expect(bytesOf(Holder, {})).toBe("00000000 00000000 00000000 00000000");
  });

  test("follows references and strings", () => {
    const Holder = struct("Holder", { name: cstring, inner: ref(Inner), names: list(cstring) });
    const arena = new Arena(4096);
    const { read } = arena.place(Holder, { name: "é", inner: { value: 3 }, names: ["a", "bc"] });
    const at = (address: unknown) => Number(address) - Number(arena.addressOf(0));
    expect([...arena.bytes.subarray(at(read().name), at(read().name) + 3)]).toEqual([
      0xc3, 0xa9, 0,
    ]);
    expect(arena.view.getUint32(at(read().inner) + 4, true)).toBe(3);
    const second = at(arena.view.getBigUint64(at(read().names) + 8, true));
    expect(Buffer.from(arena.bytes.subarray(second, second + 3)).toString()).toBe("bc\0");
  });

  test("keeps handles beyond 2^53 and wants them as bigint", () => {
    const Holder = struct("Holder", { handle, next: pointer });
    expect(bytesOf(Holder, { handle: 0xfedc_ba98_7654_3210n, next: null })).toBe(
      "10325476 98badcfe 00000000 00000000",
    );
    expectTypeOf<Input<(typeof Holder)["fields"]>["handle"]>().toEqualTypeOf<bigint | undefined>();
  });

  test("refuses a member that the struct does not have", () => {
    const wrong = { value: 1, valeu: 2 };
    expect(() => new Arena(64).put(Inner, wrong)).toThrow(
      new TypeError("Inner has no member valeu"),
    );
  });

  test.each([-1, 1.5, Number.NaN, 2 ** 53])("refuses %d as a size", (size) => {
    const Sized = struct("Sized", { size: size64 });
    expect(() => new Arena(64).put(Sized, { size })).toThrow(`not a size: ${size}`);
  });
});

describe("reading", () => {
  test("gives what was written", () => {
    const All = struct("All", {
      a: u8,
      b: u32,
      c: i32,
      d: f32,
      e: bool32,
      f: size64,
      g: handle,
      h: bytes(3),
      i: array(u32, 2),
    });
    const value = {
      a: 255,
      b: 2 ** 32 - 1,
      c: -(2 ** 31),
      d: 0.5,
      e: true,
      f: 2 ** 53 - 1,
      g: 2n ** 64n - 1n,
      h: new Uint8Array([1, 2, 3]),
      i: [4, 5],
    };
    expect(new Arena(256).place(All, value).read()).toEqual(value);
  });

  test("rounds sizes that mean 'unlimited'", () => {
    const Sized = struct("Sized", { size: size64 });
    const arena = new Arena(64);
    const { offset, read } = arena.place(Sized);
    arena.view.setBigUint64(offset, 2n ** 64n - 1n, true);
    expect(read().size).toBe(2 ** 64);
  });

  test.each([
    ["ends at the zero", "llvm\0\u0001\u0002", "llvm"],
    ["ends with the array if there is no zero", "12345678", "12345678"],
    ["is empty", "\0", ""],
  ])("a char array %s", (_, memory, expected) => {
    const Named = struct("Named", { name: chars(8) });
    const arena = new Arena(64);
    const { offset, read } = arena.place(Named);
    arena.bytes.set(new TextEncoder().encode(memory), offset);
    expect(read().name).toBe(expected);
  });
});
