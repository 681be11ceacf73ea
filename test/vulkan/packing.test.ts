/** How pieces share allocations: numbers only. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/errors.ts";
import { planPacking } from "../../src/vulkan/memory.ts";
import { pack } from "../../src/vulkan/packing.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";
import { fakeDevice, withLimits } from "../helpers/fake-device.ts";

const gibibyte = 2 ** 30;

function pieces(...sizes: number[]) {
  return sizes.map((byteSize, i) => ({ label: `piece ${i}`, byteSize }));
}

describe("pack", () => {
  test("puts neighbours side by side, each at a multiple of the alignment", () => {
    expect(pack([100, 300, 256], 256, 4096)).toEqual({
      blocks: [1024],
      placements: [
        { blockIndex: 0, offset: 0 },
        { blockIndex: 0, offset: 256 },
        { blockIndex: 0, offset: 768 },
      ],
    });
  });

  test("begins a new block when the last one is full to the byte, and not before", () => {
    const { blocks, placements } = pack([512, 512, 1, 1023], 256, 1024);
    expect(blocks).toEqual([1024, 256, 1024]);
    expect(placements.map(({ blockIndex }) => blockIndex)).toEqual([0, 0, 1, 2]);
  });

  test("of nothing is nothing, and a piece of no bytes has a place", () => {
    expect(pack([], 256, 1024)).toEqual({ blocks: [], placements: [] });
    expect(pack([0], 256, 1024)).toEqual({
      blocks: [256],
      placements: [{ blockIndex: 0, offset: 0 }],
    });
  });

  test("does not take a piece that exceeds a block", () => {
    expect(() => pack([1025], 256, 1024)).toThrow(
      new InvariantError("1025 bytes exceed a block of 1024"),
    );
  });

  test("is exact beyond 32 bits", () => {
    const sizes = [3 * gibibyte, 5 * gibibyte - 300, 100];
    expect(pack(sizes, 256, 16 * gibibyte).placements.map(({ offset }) => offset)).toEqual([
      0,
      3 * gibibyte,
      8 * gibibyte - 256,
    ]);
  });

  test("of random sizes never overlaps, leaves no block, and wastes no more than it must", () => {
    const random = new SeededRandom(1);
    for (let round = 0; round < 200; round++) {
      const sizes = Array.from({ length: 1 + random.below(40) }, () => random.below(5000));
      const { blocks, placements } = pack(sizes, 256, 8192);
      const ends = blocks.map(() => 0);
      placements.forEach(({ blockIndex, offset }, i) => {
        expect(offset % 256).toBe(0);
        expect(offset).toBeGreaterThanOrEqual(ends[blockIndex] ?? Infinity);
        expect(offset - (ends[blockIndex] ?? 0)).toBeLessThan(256);
        ends[blockIndex] = offset + (sizes[i] ?? 0);
        expect(ends[blockIndex]).toBeLessThanOrEqual(blocks[blockIndex] ?? 0);
      });
      for (const block of blocks) expect(block).toBeLessThanOrEqual(8192);
    }
  });
});

describe("on a device", () => {
  test.each([
    ["1 GiB at a time on a large one", 2 ** 62, [800, 800, 200], [800, 1000]],
    ["at most what one allocation may be", 512 * 2 ** 20, [400, 200, 300], [400, 500]],
    [
      "a piece over 1 GiB in a block of its own size",
      2 ** 32 - 4,
      [100, 3000, 900],
      [100, 3000, 900],
    ],
  ])("%s", (_, allocationBytes, mebibytes, expected) => {
    const device = withLimits(fakeDevice(), { allocationBytes });
    const { blocks } = planPacking(device, pieces(...mebibytes.map((size) => size * 2 ** 20)));
    expect(blocks.map((bytes) => bytes / 2 ** 20)).toEqual(expected);
  });

  test.each([
    ["2 GiB", 2 ** 31],
    ["4 GiB - 4", 2 ** 32 - 4],
  ])("a piece of exactly the limit of %s fits, one byte more does not", (_, limit) => {
    const device = withLimits(fakeDevice(), { allocationBytes: limit });
    const { blocks } = planPacking(device, pieces(limit));
    expect(blocks.length).toBe(1);
    expect(() => planPacking(device, pieces(10, limit + 1))).toThrow("piece 1 needs");
    for (const block of blocks) expect(block).toBeLessThanOrEqual(limit);
  });

  test("no pieces need no block", () => {
    expect(planPacking(fakeDevice(), [])).toEqual({ blocks: [], placements: [] });
  });
});
