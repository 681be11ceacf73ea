/** What is read from a real driver makes sense, and devices open and close beside each other. */
import { describe, expect, test } from "bun:test";
import { missingRequirements } from "../../src/vulkan/capabilities.ts";
import { Device } from "../../src/vulkan/device.ts";
import { Pipelines } from "../../src/vulkan/pipeline.ts";
import { validationLayer, validationRequested } from "../../src/vulkan/validation.ts";
import { adderRecipe } from "../helpers/adder.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";

describe.skipIf(noGpu !== undefined)("the capabilities", () => {
  test("are those of a usable device", () => {
    const { capabilities } = testGpu().device;
    expect(missingRequirements(capabilities)).toEqual([]);
    expect(capabilities.name.length).toBeGreaterThan(0);
    expect(capabilities.apiVersion[0]).toBeGreaterThanOrEqual(1);
    expect(capabilities.deviceUuid).toMatch(/^[0-9a-f]{32}$/);
    expect(capabilities.driver.name.length).toBeGreaterThan(0);
  });

  test("keep what Vulkan guarantees", () => {
    const { limits, subgroup, memoryTypes, heaps, queueFamilies } = testGpu().device.capabilities;
    expect(limits.workgroupInvocations).toBeGreaterThanOrEqual(128);
    expect(limits.workgroupCount.every((count) => count >= 65_535)).toBe(true);
    expect(limits.sharedMemoryBytes).toBeGreaterThanOrEqual(16_384);
    expect(limits.pushConstantBytes).toBeGreaterThanOrEqual(128);
    expect(limits.allocationBytes).toBeGreaterThanOrEqual(2 ** 30);
    expect(limits.timestampPeriodNs).toBeGreaterThan(0);
    expect(Math.log2(subgroup.size) % 1).toBe(0);
    expect(subgroup.minSize).toBeLessThanOrEqual(subgroup.size);
    expect(subgroup.maxSize).toBeGreaterThanOrEqual(subgroup.size);
    expect(heaps.some(({ deviceLocal }) => deviceLocal)).toBe(true);
    for (const { heapIndex } of memoryTypes) expect(heaps[heapIndex]).toBeDefined();
    expect(queueFamilies.some(({ compute }) => compute)).toBe(true);
  });

  test("are the same when they are read again", () => {
    const { instance, device } = testGpu();
    const again = instance.devices[device.physical.index]?.capabilities;
    expect(again).toBe(device.capabilities);
  });
});

describe.skipIf(noGpu !== undefined)("a second device", () => {
  test.each([
    ["without statistics", false],
    ["with statistics", true],
  ])("opens beside the first %s, and works", (_, statistics) => {
    const { instance, device } = testGpu();
    const second = Device.open(instance, device.physical, { statistics });
    const pipelines = new Pipelines(second);
    expect(pipelines.get(adderRecipe).handle).not.toBe(0n);
    expect(second.executables !== undefined).toBe(
      statistics && device.capabilities.features.pipelineStatistics,
    );
    pipelines.close();
    second.close();
  });
});

test.skipIf(noGpu !== undefined || !validationRequested)("the validation layer is there", () => {
  expect(testGpu().instance.layers()).toContain(validationLayer);
});

describe.skipIf(noGpu !== undefined)("waiting until a device is idle", () => {
  /** The test device, as if its driver answered so. */
  const answering = (result: number): Device => {
    const { device } = testGpu();
    const vk = { ...device.vk, vkDeviceWaitIdle: () => result };
    return Object.create(device, { vk: { value: vk } }) as Device;
  };

  test("ends at once if it is lost, so that all can be freed", () => {
    expect(answering(-4).waitIdle()).toBeUndefined();
  });

  test("fails for any other reason", () => {
    expect(() => answering(-1).waitIdle()).toThrow("vkDeviceWaitIdle: the system's memory is full");
  });
});
