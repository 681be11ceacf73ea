/** How the cache keeps keys and values: sizes, levels, the rotation, and what comes back. */
import { describe, expect, test } from "bun:test";
import { kvHeadBytes, kvTypesName, parseKvTypes, type KvType } from "../../src/kernels/kv-type.ts";
import {
  decode,
  encode,
  noiseCode,
  noiseLevel,
  place,
  scramble,
  take,
  throughCache,
  tileBytes,
  unscramble,
} from "../../src/kernels/verify/kv-codec.ts";
import { Random } from "../../src/kernels/verify/random.ts";

const round = (values: readonly number[]) => values.map((value) => Number(value.toFixed(4)));

/** Normal noise (Box and Muller). */
function noise(count: number, seed: number): number[] {
  const random = new Random(seed);
  return Array.from({ length: count }, () => {
    const radius = Math.sqrt(-2 * Math.log(random.between(1e-9, 1)));
    return radius * Math.cos(2 * Math.PI * random.between(0, 1));
  });
}

/** Mean square of what is lost, relative to what was there. */
function lossOf(type: KvType, heads: readonly (readonly number[])[]): number {
  let [lost, all] = [0, 0];
  for (const head of heads) {
    const seen = throughCache(type, head);
    head.forEach((value, i) => {
      lost += (value - (seen[i] ?? 0)) ** 2;
      all += value * value;
    });
  }
  return lost / all;
}

describe("the name of a type", () => {
  test("stands for keys and values, or for each of them", () => {
    expect(parseKvTypes("tq4")).toEqual({ key: "tq4", value: "tq4" });
    expect(parseKvTypes("q8_0,tq3")).toEqual({ key: "q8_0", value: "tq3" });
    expect(parseKvTypes(" f16 , q8_0 ")).toEqual({ key: "f16", value: "q8_0" });
  });

  test.each(["", "q4_0", "tq4,", ",tq4", "f16,f16,f16", "toString"])("is not %p", (name) => {
    expect(parseKvTypes(name)).toBeUndefined();
  });

  test("is as short as it can be", () => {
    expect(kvTypesName({ key: "tq4", value: "tq4" })).toBe("tq4");
    expect(kvTypesName({ key: "q8_0", value: "tq4" })).toBe("q8_0,tq4");
  });
});

describe("a head", () => {
  test.each([
    [64, [128, 68, 34, 26]],
    [80, [160, 102, 50, 38]],
    [96, [192, 102, 50, 38]],
    [128, [256, 136, 66, 50]],
    [256, [512, 272, 130, 98]],
    [512, [1024, 544, 258, 194]],
  ])("of %d values takes so many bytes as f16, q8_0, tq4, tq3: %p", (width, expected) => {
    const types = ["f16", "q8_0", "tq4", "tq3"] as const;
    expect(types.map((type) => kvHeadBytes(type, width))).toEqual(expected);
  });

  test("of bytes has a scale for every 32 values, which 127 reach", () => {
    const head = Array.from({ length: 64 }, (_, i) => (i < 32 ? i - 16 : 0));
    head[3] = 254;
    const { codes, scales } = encode("q8_0", head);
    expect(scales).toEqual([0x4000, 0]);
    expect(codes.slice(0, 6)).toEqual([-8, -7, -7, 127, -6, -5]);
    expect(decode("q8_0", { codes, scales }).slice(0, 6)).toEqual([-16, -14, -14, 254, -12, -10]);
    expect(codes.slice(32)).toEqual(Array(32).fill(0));
  });

  test("of nothing stays nothing", () => {
    for (const type of ["f16", "q8_0", "tq4", "tq3"] as const) {
      expect(throughCache(type, Array(96).fill(0)).every((value) => value === 0)).toBe(true);
    }
  });

  test("keeps its product with itself", () => {
    for (const type of ["tq4", "tq3"] as const) {
      const head = noise(128, 5).map((value, i) => value * (i === 7 ? 20 : 1));
      const dot = (a: readonly number[], b: readonly number[]) =>
        a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
      expect(dot(head, throughCache(type, head)) / dot(head, head)).toBeCloseTo(1, 3);
    }
  });
});

describe("levels of noise", () => {
  test("are these", () => {
    const levels = (type: "tq4" | "tq3", first: number, count: number) =>
      round(Array.from({ length: count }, (_, i) => noiseLevel(type, first + i)));
    expect(levels("tq4", 8, 8)).toEqual([
      0.1237, 0.3771, 0.6488, 0.9509, 1.2955, 1.6947, 2.1608, 2.7059,
    ]);
    expect(levels("tq3", 4, 4)).toEqual([0.2373, 0.7465, 1.36, 2.1471]);
    expect(levels("tq4", 0, 1)).toEqual([-2.7059]);
    expect(levels("tq3", 3, 1)).toEqual([-0.2373]);
  });

  test("are taken by whoever is nearest", () => {
    expect([-9, -0.01, 0.01, 0.24, 0.26, 9].map((x) => noiseCode("tq4", x))).toEqual([
      0, 7, 8, 8, 9, 15,
    ]);
    expect([-9, -0.01, 0.01, 0.48, 0.5, 9].map((x) => noiseCode("tq3", x))).toEqual([
      0, 3, 4, 4, 5, 7,
    ]);
  });

  test("lose little more of it than the best there are: 0.95 % and 3.5 %", () => {
    const heads = Array.from({ length: 400 }, (_, i) => noise(128, i + 1));
    expect(lossOf("tq4", heads)).toBeWithin(0.009, 0.0103);
    expect(lossOf("tq3", heads)).toBeWithin(0.033, 0.037);
  });
});

describe("the rotation", () => {
  test("of a single value spreads it over a head, with these signs", () => {
    const head = Array(16).fill(0);
    head[1] = 4;
    expect(scramble(head)).toEqual([1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1]);
    const sums = scramble(Array(16).fill(1)).map((x) => x * 4);
    expect(sums).toEqual([0, 0, 4, 4, 4, 4, 0, 0, 8, -8, -4, -4, 4, 4, 0, 0]);
  });

  test.each([8, 64, 80, 96, 120, 128, 256, 512])("of %d values is undone", (width) => {
    const head = noise(width, width);
    const there = scramble(head);
    const squares = (values: readonly number[]) => values.reduce((sum, x) => sum + x * x, 0);
    expect(squares(there) / squares(head)).toBeCloseTo(1, 10);
    expect(round(unscramble(there))).toEqual(round(head));
  });

  test.each([
    [64, 0.0105, 0.038],
    [80, 0.012, 0.042],
    [96, 0.012, 0.042],
    [128, 0.0105, 0.038],
  ])("of %d values saves heads with a few large ones", (width, four, three) => {
    const heads = Array.from({ length: 200 }, (_, i) =>
      noise(width, i + 1).map((value, at) => value * (at % 37 === 5 ? 30 : 1)),
    );
    expect(lossOf("tq4", heads)).toBeLessThan(four);
    expect(lossOf("tq3", heads)).toBeLessThan(three);
  });
});

describe("a tile", () => {
  test.each(["f16", "q8_0", "tq4", "tq3"] as const)("of %s keeps its positions apart", (type) => {
    for (const width of [64, 80]) {
      const tile = new Uint8Array(tileBytes(type, width)).fill(0xff);
      const heads = Array.from({ length: 32 }, (_, i) => encode(type, noise(width, i + 1)));
      for (const offset of heads.keys()) {
        const at = (offset * 7) % 32;
        const head = heads[at];
        if (head !== undefined) place(type, tile, at, head);
      }
      heads.forEach((head, offset) => {
        const { codes, scales } = take(type, tile, offset, width);
        // Without the minus of a zero.
        const plain = (values: readonly number[]) => values.map((value) => value + 0);
        expect(plain(decode(type, { codes, scales }))).toEqual(plain(decode(type, head)));
      });
    }
  });

  test("has its codes at these bits, and halves behind them", () => {
    const bytes = (type: KvType, codes: readonly number[], scales: readonly number[]) => {
      const tile = new Uint8Array(tileBytes(type, 32));
      place(type, tile, 1, { codes: [...codes, ...Array(32 - codes.length).fill(0)], scales });
      return [...tile.entries()].filter(([, byte]) => byte !== 0);
    };
    expect(bytes("q8_0", [1, -1], [0x3c00])).toEqual([
      [32, 1],
      [33, 255],
      [1027, 0x3c],
    ]);
    expect(bytes("tq4", [3, 9], [0x3c01])).toEqual([
      [16, 0x93],
      [514, 1],
      [515, 0x3c],
    ]);
    // 1, 6 = 4 + 2, 7 = 4 + 3: two bits each, and the third in the other plane.
    expect(bytes("tq3", [1, 6, 7], [0x3c00])).toEqual([
      [8, 0b11_10_01],
      [260, 0b110],
      [387, 0x3c],
    ]);
  });
});
