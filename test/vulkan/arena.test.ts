/** Scratch memory: frames free and zero, addresses stay, a full arena says so. */
import { describe, expect, test } from "bun:test";
import { read } from "bun:ffi";
import { InvariantError } from "../../src/errors.ts";
import { Arena } from "../../src/vulkan/arena.ts";
import { header, struct, u32 } from "../../src/vulkan/layout.ts";

const Pair = struct("Pair", { ...header(7), a: u32, b: u32 });

describe("frames", () => {
  test("free and zero what was allocated in them", () => {
    const arena = new Arena(64);
    const first = arena.allocate(8);
    {
      using _ = arena.frame();
      arena.bytes.fill(0xff, arena.allocate(16), 24);
    }
    expect(arena.allocate(16)).toBe(first + 8);
    expect([...arena.bytes]).toEqual(Array(64).fill(0));
  });

  test("nest", () => {
    const arena = new Arena(64);
    using _ = arena.frame();
    arena.allocate(8);
    {
      using _inner = arena.frame();
      expect(arena.allocate(8)).toBe(8);
    }
    expect(arena.allocate(8)).toBe(8);
  });

  test("also end when something is thrown", () => {
    const arena = new Arena(64);
    const fails = () => {
      using _ = arena.frame();
      arena.allocate(32);
      throw new Error("as wanted");
    };
    expect(fails).toThrow("as wanted");
    expect(arena.allocate(64)).toBe(0);
  });
});

describe("allocation", () => {
  test("aligns", () => {
    const arena = new Arena(64);
    expect([
      arena.allocate(1, 1),
      arena.allocate(4, 4),
      arena.allocate(8),
      arena.allocate(0),
    ]).toEqual([0, 4, 8, 16]);
  });

  test("ends with an invariant when the arena is full", () => {
    const arena = new Arena(64);
    arena.allocate(60);
    expect(() => arena.allocate(8)).toThrow(new InvariantError("arena is full: 64 + 8 bytes"));
    expect(arena.allocate(4, 4)).toBe(60);
  });

  test("never moves: the address shows what is written later", () => {
    const arena = new Arena(4096);
    const address = arena.addressOf(arena.allocate(8));
    for (let i = 0; i < 20_000; i++) {
      arena.view.setUint32(0, i, true);
      if (read.u32(address) !== i) throw new Error(`read ${read.u32(address)} instead of ${i}`);
    }
  });
});

describe("what is put there", () => {
  test("a struct is read back as the driver left it", () => {
    const arena = new Arena(256);
    const placed = arena.place(Pair, { a: 1 });
    arena.view.setUint32(placed.offset + Pair.offsets.b, 5, true);
    expect(placed.read()).toMatchObject({ sType: 7, a: 1, b: 5 });
    expect(placed.address).toBe(arena.addressOf(placed.offset));
  });

  test("each struct of an array has its sType", () => {
    const pairs = new Arena(256).placeArray(Pair, 3);
    expect([0, 1, 2].map((i) => pairs.read(i).sType)).toEqual([7, 7, 7]);
  });

  test("an array of none is fine", () => {
    expect(() => new Arena(16).placeArray(Pair, 0)).not.toThrow();
  });

  test("strings end with a zero, bytes are copied, nothing at all has an address", () => {
    const arena = new Arena(64);
    arena.putString("ab");
    arena.putBytes(new Uint8Array([1, 2]), 1);
    expect([...arena.bytes.subarray(0, 5)]).toEqual([97, 98, 0, 1, 2]);
    expect(Number(arena.putBytes(new Uint8Array()))).toBeGreaterThan(0);
  });

  test("an out-parameter is read as what it is", () => {
    const arena = new Arena(64);
    const out = arena.out();
    arena.view.setBigUint64(0, 0xfedc_ba98_7654_3210n, true);
    expect([out.u32(), out.u64()]).toEqual([0x7654_3210, 0xfedc_ba98_7654_3210n]);
    arena.view.setBigUint64(0, 4096n, true);
    expect(Number(out.pointer())).toBe(4096);
  });
});
