/** Buffers and their parts: addresses, bounds, and what the host can see. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/errors.ts";
import {
  addressOf,
  DeviceBuffer,
  hostBytes,
  subslice,
  type MemoryUse,
} from "../../src/vulkan/buffer.ts";
import { freeDeviceBytes, MemoryGroup, sliceAlignment } from "../../src/vulkan/memory.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { ownedByEachTest } from "../helpers/owned.ts";

const own = ownedByEachTest();

function buffer(use: MemoryUse, byteSize = 1024): DeviceBuffer {
  return own(new DeviceBuffer(testGpu().device, byteSize, use, "a test"));
}

describe.skipIf(noGpu !== undefined)("a buffer", () => {
  test.each(["upload", "step", "readback"] as const)(
    "for %s is seen by the host, all of it",
    (use) => {
      const { bytes } = buffer(use, 1000);
      expect(bytes?.length).toBe(1000);
      bytes?.fill(7);
      expect(bytes?.at(-1)).toBe(7);
    },
  );

  test("of the device's own is not, whatever the device", () => {
    const own = buffer("device");
    expect(own.bytes).toBeUndefined();
    expect(() => hostBytes(own.slice())).toThrow(
      new InvariantError("the host cannot see this memory"),
    );
  });

  test("has an address that kernels can load 16 bytes from, and slices count from it", () => {
    const whole = buffer("device");
    expect(whole.address).toBeGreaterThan(0n);
    expect(whole.address % 16n).toBe(0n);
    expect(addressOf(whole.slice(256, 128))).toBe(whole.address + 256n);
  });

  test("has slices within it, and slices have slices", () => {
    const step = buffer("step");
    step.bytes?.set([1, 2, 3, 4, 5, 6], 8);
    const slice = step.slice(8);
    expect(slice.byteSize).toBe(1016);
    expect([...hostBytes(subslice(slice, 2, 3))]).toEqual([3, 4, 5]);
    expect(subslice(slice, 1016, 0)).toEqual({ buffer: step, offset: 1024, byteSize: 0 });
  });

  test.each([
    [0, 1025],
    [1024, 1],
    [1000, 25],
  ])("has no slice %d + %d", (offset, byteSize) => {
    const whole = buffer("step");
    expect(() => whole.slice(offset, byteSize)).toThrow(InvariantError);
    expect(() => subslice(whole.slice(), offset, byteSize)).toThrow(InvariantError);
    expect(() => subslice(whole.slice(), -1, 1)).toThrow(InvariantError);
  });
});

describe.skipIf(noGpu !== undefined)("a group of buffers", () => {
  test("has a slice for each piece, aligned and apart", () => {
    const { device } = testGpu();
    const pieces = [1, 256, 1000].map((byteSize) => ({ label: `${byteSize}`, byteSize }));
    const group = own(new MemoryGroup(device, "readback", pieces, "a test"));
    expect(group.slices.map(({ offset, byteSize }) => [offset, byteSize])).toEqual([
      [0, 1],
      [256, 256],
      [512, 1000],
    ]);
    expect(group.byteSize).toBe(1536);
    for (const slice of group.slices) expect(addressOf(slice) % BigInt(sliceAlignment)).toBe(0n);
  });

  test("of no pieces takes no memory", () => {
    expect(own(new MemoryGroup(testGpu().device, "device", [], "a test")).byteSize).toBe(0);
  });
});

describe.skipIf(noGpu !== undefined)("the memory budget", () => {
  test("is at most the heaps' sizes, and what is left of it is never negative", () => {
    const { device } = testGpu();
    for (const { byteSize, freeBytes } of device.budget()) {
      expect(freeBytes).toBeGreaterThan(0);
      expect(freeBytes).toBeLessThanOrEqual(byteSize);
    }
    expect(freeDeviceBytes(device, 0)).toBeGreaterThan(0);
    expect(freeDeviceBytes(device, 2 ** 60)).toBe(0);
  });
});
