/** Which memory is taken for what, on the memory tables of real drivers. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/errors.ts";
import { assertAllocatable, chooseMemoryType } from "../../src/vulkan/buffer.ts";
import { hostVisibleDeviceBytes } from "../../src/vulkan/capabilities.ts";
import { fakeDevice, memories, withLimits } from "../helpers/fake-device.ts";

const uses = ["device", "upload", "step", "readback"] as const;

test.each([
  ["discrete", { device: 0, upload: 2, step: 3, readback: 5 }, 16 * 2 ** 30],
  ["smallBar", { device: 1, upload: 2, step: 4, readback: 3 }, 246 * 2 ** 20],
  ["integrated", { device: 0, upload: 0, step: 0, readback: 1 }, 15 * 2 ** 30],
  ["software", { device: 0, upload: 0, step: 0, readback: 0 }, 23 * 2 ** 30],
] as const)("%s", (name, expected, visibleBytes) => {
  const device = fakeDevice(memories[name]);
  const chosen = Object.fromEntries(uses.map((use) => [use, chooseMemoryType(device, use)]));
  expect(chosen).toEqual(expected);
  expect(hostVisibleDeviceBytes(device)).toBe(visibleBytes);
});

describe("the types that a buffer allows", () => {
  const device = fakeDevice(memories.discrete);

  test("are respected even if a better one exists", () => {
    expect(chooseMemoryType(device, "device", 0b0000010)).toBe(1);
    expect(chooseMemoryType(device, "readback", 0b0000100)).toBe(2);
    expect(chooseMemoryType(device, "device", 0b0001000)).toBe(3);
  });

  test("may include the highest bit", () => {
    const memoryTypes = Array.from({ length: 32 }, (_, i) => ({
      heapIndex: 0,
      properties: i === 31 ? 1 : 0,
    }));
    expect(chooseMemoryType(fakeDevice({ memoryTypes }), "device", 0x8000_0000)).toBe(31);
    expect(chooseMemoryType(fakeDevice({ memoryTypes }), "device", -1)).toBe(31);
  });

  test("without any that can be mapped are a bug of the driver or of ours", () => {
    expect(() => chooseMemoryType(device, "upload", 0b1)).toThrow(
      new InvariantError("no memory type for upload"),
    );
  });
});

test("without device memory, weights go to any memory", () => {
  const device = fakeDevice({ memoryTypes: [{ heapIndex: 0, properties: 6 }] });
  expect(chooseMemoryType(device, "device")).toBe(0);
  expect(hostVisibleDeviceBytes(device)).toBe(0);
});

test("a tensor larger than one allocation may be is an error with the numbers", () => {
  const device = withLimits(fakeDevice(), { allocationBytes: 2 ** 31 });
  expect(() => assertAllocatable(device, 2 ** 31, "w")).not.toThrow();
  expect(() => assertAllocatable(device, 2 ** 31 + 1, "token_embd.weight")).toThrow(
    "token_embd.weight needs 2.15 GB in one piece and Fake GPU allows 2.15 GB",
  );
});
