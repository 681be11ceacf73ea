/** Capability records of devices that are not here, as their drivers report them. */
import type { Capabilities, MemoryHeap, MemoryType } from "../../src/vulkan/capabilities.ts";
import { DriverId, MemoryProperty } from "../../src/vulkan/constants.ts";

const { DEVICE_LOCAL, HOST_VISIBLE, HOST_COHERENT, HOST_CACHED } = MemoryProperty;
const mappable = HOST_VISIBLE | HOST_COHERENT;
const gibibyte = 2 ** 30;

interface Memory {
  readonly heaps: readonly MemoryHeap[];
  readonly memoryTypes: readonly MemoryType[];
}

/** Memory tables in the order of the drivers that they were copied from. */
export const memories = {
  /** RADV with resizable BAR. */
  discrete: {
    heaps: [
      { byteSize: 16 * gibibyte, deviceLocal: true },
      { byteSize: 12 * gibibyte, deviceLocal: false },
    ],
    memoryTypes: [
      { heapIndex: 0, properties: DEVICE_LOCAL },
      { heapIndex: 0, properties: DEVICE_LOCAL },
      { heapIndex: 1, properties: mappable },
      { heapIndex: 0, properties: DEVICE_LOCAL | mappable },
      { heapIndex: 0, properties: DEVICE_LOCAL | mappable },
      { heapIndex: 1, properties: mappable | HOST_CACHED },
      { heapIndex: 1, properties: mappable | HOST_CACHED },
    ],
  },
  /** NVIDIA without resizable BAR: a window of 246 MiB. */
  smallBar: {
    heaps: [
      { byteSize: 8 * gibibyte, deviceLocal: true },
      { byteSize: 12 * gibibyte, deviceLocal: false },
      { byteSize: 246 * 2 ** 20, deviceLocal: true },
    ],
    memoryTypes: [
      { heapIndex: 1, properties: 0 },
      { heapIndex: 0, properties: DEVICE_LOCAL },
      { heapIndex: 1, properties: mappable },
      { heapIndex: 1, properties: mappable | HOST_CACHED },
      { heapIndex: 2, properties: DEVICE_LOCAL | mappable },
    ],
  },
  /** Intel's Mesa driver on a processor's own GPU. */
  integrated: {
    heaps: [{ byteSize: 15 * gibibyte, deviceLocal: true }],
    memoryTypes: [
      { heapIndex: 0, properties: DEVICE_LOCAL | mappable },
      { heapIndex: 0, properties: DEVICE_LOCAL | mappable | HOST_CACHED },
    ],
  },
  /** Lavapipe: one type for everything. */
  software: {
    heaps: [{ byteSize: 23 * gibibyte, deviceLocal: true }],
    memoryTypes: [{ heapIndex: 0, properties: DEVICE_LOCAL | mappable | HOST_CACHED }],
  },
} as const satisfies Record<string, Memory>;

/** A usable discrete GPU, but for what is given. */
export function fakeDevice(given: Partial<Capabilities> = {}): Capabilities {
  return {
    name: "Fake GPU",
    kind: "discrete",
    vendorId: 0x1002,
    deviceId: 0x744c,
    apiVersion: [1, 3, 0],
    driver: { id: DriverId.MESA_RADV, name: "radv", info: "Mesa 25.0.7", version: 1 },
    deviceUuid: "00".repeat(16),
    pipelineCacheUuid: "11".repeat(16),
    pciAddress: undefined,
    extensions: new Set(),
    limits: {
      workgroupInvocations: 1024,
      workgroupCount: [65535, 65535, 65535],
      sharedMemoryBytes: 65536,
      storageBufferRange: 2 ** 32 - 1,
      allocationBytes: 4 * gibibyte,
      pushConstantBytes: 256,
      nonCoherentAtomBytes: 64,
      timestampPeriodNs: 10,
    },
    subgroup: {
      size: 64,
      minSize: 32,
      maxSize: 64,
      sizeControl: true,
      arithmetic: true,
      shuffle: true,
    },
    features: {
      bufferDeviceAddress: true,
      timelineSemaphore: true,
      float16: true,
      int8: true,
      int16: true,
      int64: true,
      storage8: true,
      storage16: true,
      memoryModel: true,
      integerDotProduct: true,
      integerDotProductAccelerated: true,
      cooperativeMatrix: false,
      pipelineStatistics: true,
    },
    cooperativeMatrices: [],
    queueFamilies: [{ compute: true, graphics: true, timestampBits: 64 }],
    ...memories.discrete,
    ...given,
  };
}

/** One with a limit changed. */
export function withLimits(
  device: Capabilities,
  limits: Partial<Capabilities["limits"]>,
): Capabilities {
  return { ...device, limits: { ...device.limits, ...limits } };
}
