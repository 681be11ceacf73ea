/** The test device itself: a green run must not mean that everything was skipped. */
import { expect, test } from "bun:test";
import { isGpuExpected, noGpu, testGpu } from "./gpu.ts";

test.skipIf(!isGpuExpected)("a device is there where one is expected", () => {
  expect(noGpu).toBeUndefined();
});

test.skipIf(noGpu !== undefined)("the device can do what every kernel needs", () => {
  const { features, subgroup } = testGpu().device.capabilities;
  expect(features).toMatchObject({ bufferDeviceAddress: true, timelineSemaphore: true });
  expect(subgroup.size).toBeGreaterThan(0);
});
