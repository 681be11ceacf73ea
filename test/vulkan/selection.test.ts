/** Which device is taken: from records alone, no driver involved. */
import { describe, expect, test } from "bun:test";
import { UserError } from "../../src/errors.ts";
import type { Capabilities } from "../../src/vulkan/capabilities.ts";
import { missingRequirements } from "../../src/vulkan/capabilities.ts";
import { DriverId } from "../../src/vulkan/constants.ts";
import { chooseDevice, judgeDevices, localBytes } from "../../src/vulkan/selection.ts";
import { fakeDevice, memories } from "../helpers/fake-device.ts";

/** Devices numbered in their order. */
function list(...devices: Partial<Capabilities>[]) {
  return devices.map((given, index) => ({ index, capabilities: fakeDevice(given) }));
}

function heap(gigabytes: number) {
  return { heaps: [{ byteSize: gigabytes * 1e9, deviceLocal: true }] };
}

function refusalOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof UserError && error.kind === "device") return error.text;
    throw error;
  }
  throw new Error("nothing was refused");
}

const cpu = {
  name: "llvmpipe (LLVM 15.0.6, 256 bits)",
  kind: "cpu",
  ...memories.software,
} as const;
const noAddresses = {
  ...fakeDevice().features,
  bufferDeviceAddress: false,
};

describe("without a wish", () => {
  test.each([
    ["discrete before integrated", ["integrated", "discrete"], 1],
    ["integrated before virtual", ["virtual", "integrated"], 1],
    ["virtual before other kinds", ["other", "virtual"], 1],
    ["anything before the processor", ["cpu", "other"], 1],
    ["the processor if there is nothing else", ["cpu"], 0],
  ] as const)("%s", (_, kinds, expected) => {
    const devices = list(...kinds.map((kind, i) => ({ kind, deviceUuid: `0${i + 1}` })));
    expect(chooseDevice(devices).index).toBe(expected);
  });

  test("within a kind the larger memory wins, then the first", () => {
    expect(chooseDevice(list(heap(8), heap(24), heap(16))).index).toBe(1);
    expect(chooseDevice(list(heap(8), heap(8))).index).toBe(0);
  });

  test("a discrete GPU wins over an integrated one with more memory", () => {
    const devices = list({ kind: "integrated", ...heap(64) }, { kind: "discrete", ...heap(8) });
    expect(chooseDevice(devices).index).toBe(1);
  });

  test("an unusable device is passed over", () => {
    const devices = list({ ...heap(24), features: noAddresses }, heap(8));
    expect(chooseDevice(devices).index).toBe(1);
  });

  test("vendors that nobody has heard of are fine", () => {
    const devices = list(cpu, {
      name: "Moore 9000",
      vendorId: 0x1ed5,
      driver: { id: 999, name: "mt", info: "", version: 0 },
    });
    expect(chooseDevice(devices).index).toBe(1);
  });

  test("no device at all, and none that is usable, are errors with reasons", () => {
    expect(refusalOf(() => chooseDevice([]))).toBe(
      "no usable Vulkan device: none found; update the GPU's driver; zinc --check says more",
    );
    expect(refusalOf(() => chooseDevice(list({ name: "Old", apiVersion: [1, 1, 0] })))).toBe(
      "no usable Vulkan device: 0 Old (the driver offers Vulkan 1.1 and zinc needs 1.2); " +
        "update the GPU's driver; zinc --check says more",
    );
  });
});

describe("one GPU through two drivers", () => {
  const proprietary = { id: DriverId.AMD_PROPRIETARY, name: "amdvlk", info: "", version: 1 };
  const address = { pciAddress: "0000:03:00.0" };

  test("is taken once, through the better driver", () => {
    const devices = list({ ...address, driver: proprietary }, address);
    expect(chooseDevice(devices).index).toBe(1);
    expect(judgeDevices(devices)).toEqual([
      { usable: true, reason: "the same GPU as device 1 through another driver" },
      { usable: true, reason: undefined },
    ]);
  });

  test("is told by its UUID where there is no address", () => {
    const uuid = { deviceUuid: "ab".repeat(16) };
    const devices = list({ ...uuid, driver: proprietary }, uuid);
    expect(judgeDevices(devices)[0]?.reason).toBe(
      "the same GPU as device 1 through another driver",
    );
  });

  test("is taken through the worse driver if the better one lacks something", () => {
    const devices = list(
      { ...address, driver: proprietary },
      { ...address, features: noAddresses },
    );
    expect(chooseDevice(devices).index).toBe(0);
    expect(judgeDevices(devices).map(({ usable }) => usable)).toEqual([true, false]);
  });

  test("with the same driver twice (a layer, say) is taken the first time", () => {
    const devices = list(address, address);
    expect(judgeDevices(devices).map(({ reason }) => reason)).toEqual([
      undefined,
      "the same GPU as device 0 through another driver",
    ]);
  });

  test("is not confused with its twin in the next slot, or with devices without a UUID", () => {
    const twins = list(address, { pciAddress: "0000:04:00.0" });
    expect(judgeDevices(twins).every(({ reason }) => reason === undefined)).toBe(true);
    expect(judgeDevices(list({}, {})).every(({ reason }) => reason === undefined)).toBe(true);
  });

  test("can still be asked for through either", () => {
    const devices = list({ ...address, driver: proprietary }, address);
    expect(chooseDevice(devices, "0").index).toBe(0);
  });
});

describe("a wish", () => {
  const devices = list(
    cpu,
    { name: "AMD Radeon RX 7900 XTX (RADV NAVI31)", pciAddress: "0000:03:00.0" },
    { name: "AMD Radeon RX 9070 (RADV GFX1201)", pciAddress: "0000:0a:00.0" },
    { name: "Intel UHD 600", features: noAddresses },
  );

  test.each([
    ["0", 0],
    ["2", 2],
    ["radeon", 1],
    ["9070", 2],
    ["gfx1201", 2],
    ["LLVMPIPE", 0],
    ["0000:0A:00.0", 2],
  ])("%s takes device %d", (wish, expected) => {
    // Numbers of more than two digits are parts of names.
    expect(chooseDevice(devices, wish).index).toBe(expected);
  });

  test.each(["7", "nvidia", "0000:05:00.0"])(
    "%s that nothing matches lists what there is",
    (wish) => {
      expect(refusalOf(() => chooseDevice(devices, wish))).toBe(
        `no device matches --device ${wish}; there are: 0 llvmpipe (LLVM 15.0.6, 256 bits); ` +
          "1 AMD Radeon RX 7900 XTX (RADV NAVI31); 2 AMD Radeon RX 9070 (RADV GFX1201); " +
          "3 Intel UHD 600 (no bufferDeviceAddress)",
      );
    },
  );

  test("for an unusable device is refused with the reason", () => {
    expect(refusalOf(() => chooseDevice(devices, "intel"))).toBe(
      "device 3 (Intel UHD 600) cannot be used: no bufferDeviceAddress; " +
        "update its driver or take another one with --device",
    );
  });
});

describe("what a device must have", () => {
  test.each([
    ["Vulkan 1.2", { apiVersion: [1, 2, 0] }, []],
    ["a newer major version", { apiVersion: [2, 0, 0] }, []],
    [
      "Vulkan 1.1",
      { apiVersion: [1, 1, 131] },
      ["the driver offers Vulkan 1.1 and zinc needs 1.2"],
    ],
    ["Vulkan 0.9", { apiVersion: [0, 9, 0] }, ["the driver offers Vulkan 0.9 and zinc needs 1.2"]],
    [
      "no queue for compute",
      { queueFamilies: [{ compute: false, graphics: true, timestampBits: 64 }] },
      ["no compute queue"],
    ],
    [
      "no features",
      { features: { ...noAddresses, timelineSemaphore: false } },
      ["no bufferDeviceAddress", "no timelineSemaphore"],
    ],
  ] as const)("%s", (_, given, expected) => {
    expect(missingRequirements(fakeDevice(given))).toEqual([...expected]);
  });

  test("memory counts where it is the device's own", () => {
    expect(localBytes(fakeDevice(memories.smallBar))).toBe(8 * 2 ** 30 + 246 * 2 ** 20);
    expect(localBytes(fakeDevice({ heaps: [] }))).toBe(0);
  });
});
