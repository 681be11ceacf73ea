/**
 * What a physical device can do, read once into one record of plain data. Kernels pick their
 * variants from it; nothing asks the driver again and nothing compares a device's name.
 */
import type { Address, Arena } from "./arena.ts";
import {
  ComponentType,
  DeviceType,
  MemoryHeapFlag,
  MemoryProperty,
  QueueFlag,
  Scope,
  ShaderStage,
  SubgroupFeature,
} from "./constants.ts";
import type { CooperativeMatrixFunctions, InstanceFunctions } from "./library.ts";
import { check } from "./result.ts";
import {
  VkCooperativeMatrixPropertiesKHR,
  VkExtensionProperties,
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR,
  VkPhysicalDeviceFeatures2,
  VkPhysicalDeviceMemoryProperties2,
  VkPhysicalDevicePCIBusInfoPropertiesEXT,
  VkPhysicalDeviceProperties,
  VkPhysicalDeviceProperties2,
  VkPhysicalDeviceShaderIntegerDotProductFeatures,
  VkPhysicalDeviceShaderIntegerDotProductProperties,
  VkPhysicalDeviceSubgroupSizeControlFeatures,
  VkPhysicalDeviceSubgroupSizeControlProperties,
  VkPhysicalDeviceVulkan11Properties,
  VkPhysicalDeviceVulkan11Features,
  VkPhysicalDeviceVulkan12Features,
  VkPhysicalDeviceVulkan12Properties,
  VkQueueFamilyProperties,
} from "./structs.ts";

export type DeviceKind = "discrete" | "integrated" | "virtual" | "cpu" | "other";

export interface MemoryHeap {
  readonly byteSize: number;
  readonly deviceLocal: boolean;
}

export interface MemoryType {
  readonly heapIndex: number;
  /** Bits of `MemoryProperty`. */
  readonly properties: number;
}

export interface QueueFamily {
  readonly compute: boolean;
  readonly graphics: boolean;
  readonly timestampBits: number;
}

/** A matrix shape of VK_KHR_cooperative_matrix at subgroup scope: C[m,n] = A[m,k] · B[k,n] + C. */
export interface CooperativeMatrix {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly operands: "f16" | "s8" | "u8" | "other";
  readonly accumulator: "f32" | "f16" | "s32" | "other";
}

export interface Capabilities {
  readonly name: string;
  readonly kind: DeviceKind;
  readonly vendorId: number;
  readonly deviceId: number;
  /** [major, minor, patch] of the Vulkan version that the driver offers. */
  readonly apiVersion: readonly [number, number, number];
  readonly driver: {
    readonly id: number;
    readonly name: string;
    readonly info: string;
    readonly version: number;
  };
  /** Hexadecimal. */
  readonly deviceUuid: string;
  readonly pipelineCacheUuid: string;
  /** "0000:03:00.0", where the driver tells. */
  readonly pciAddress: string | undefined;
  readonly extensions: ReadonlySet<string>;
  readonly limits: {
    readonly workgroupInvocations: number;
    readonly workgroupCount: readonly number[];
    readonly sharedMemoryBytes: number;
    readonly storageBufferRange: number;
    readonly allocationBytes: number;
    readonly pushConstantBytes: number;
    readonly nonCoherentAtomBytes: number;
    /** Nanoseconds a timestamp tick. */
    readonly timestampPeriodNs: number;
  };
  readonly subgroup: {
    readonly size: number;
    readonly minSize: number;
    readonly maxSize: number;
    /** A pipeline may ask for a size between minSize and maxSize. */
    readonly sizeControl: boolean;
    readonly arithmetic: boolean;
    readonly shuffle: boolean;
  };
  readonly features: {
    readonly bufferDeviceAddress: boolean;
    readonly timelineSemaphore: boolean;
    readonly float16: boolean;
    readonly int8: boolean;
    readonly int16: boolean;
    readonly int64: boolean;
    readonly storage8: boolean;
    readonly storage16: boolean;
    /** With device scope: enabled without it, it forbids what a shader may do otherwise. */
    readonly memoryModel: boolean;
    readonly integerDotProduct: boolean;
    /** The packed 4×8-bit dot product is one instruction. */
    readonly integerDotProductAccelerated: boolean;
    readonly cooperativeMatrix: boolean;
    readonly pipelineStatistics: boolean;
  };
  readonly cooperativeMatrices: readonly CooperativeMatrix[];
  readonly heaps: readonly MemoryHeap[];
  readonly memoryTypes: readonly MemoryType[];
  readonly queueFamilies: readonly QueueFamily[];
}

/** What zinc cannot do without, as a sentence each; none for a usable device. */
export function missingRequirements(device: Capabilities): string[] {
  const missing: string[] = [];
  const [major, minor] = device.apiVersion;
  if (major < 1 || (major === 1 && minor < 2)) {
    missing.push(`the driver offers Vulkan ${major}.${minor} and zinc needs 1.2`);
    return missing;
  }
  if (!device.features.bufferDeviceAddress) missing.push("no bufferDeviceAddress");
  if (!device.features.timelineSemaphore) missing.push("no timelineSemaphore");
  if (!device.queueFamilies.some((family) => family.compute)) missing.push("no compute queue");
  return missing;
}

/** Bytes of the largest device-local memory that the host can write directly; 0 without one. */
export function hostVisibleDeviceBytes(device: Capabilities): number {
  const wanted = MemoryProperty.DEVICE_LOCAL | MemoryProperty.HOST_VISIBLE;
  const sizes = device.memoryTypes
    .filter((type) => (type.properties & wanted) === wanted)
    .map((type) => device.heaps[type.heapIndex]?.byteSize ?? 0);
  return Math.max(0, ...sizes);
}

/** Reads everything about one physical device. */
export function readCapabilities(
  vk: InstanceFunctions,
  matrixFunctions: CooperativeMatrixFunctions | undefined,
  handle: Address,
  arena: Arena,
): Capabilities {
  using _ = arena.frame();
  const extensions = readExtensions(vk, handle, arena);
  const basic = arena.place(VkPhysicalDeviceProperties);
  vk.vkGetPhysicalDeviceProperties(handle, basic.address);
  const { apiVersion } = basic.read();
  // A driver older than 1.2 does not know the structs that are asked for below.
  const modern = apiVersion >>> 12 >= ((1 << 10) | 2);
  const properties = readProperties(vk, handle, arena, extensions, modern);
  const features = readFeatures(vk, handle, arena, extensions, modern);
  const { general, eleven, twelve, sizeControl, dotProduct, pci } = properties;
  const { limits } = general;
  const operations = eleven.subgroupSupportedOperations;
  const computeSizes = (sizeControl.requiredSubgroupSizeStages & ShaderStage.COMPUTE) !== 0;
  return {
    name: general.deviceName,
    kind: kindOf(general.deviceType),
    vendorId: general.vendorID,
    deviceId: general.deviceID,
    apiVersion: [(apiVersion >>> 22) & 0x7f, (apiVersion >>> 12) & 0x3ff, apiVersion & 0xfff],
    driver: {
      id: twelve.driverID,
      name: twelve.driverName,
      info: twelve.driverInfo,
      version: general.driverVersion,
    },
    deviceUuid: Buffer.from(eleven.deviceUUID).toString("hex"),
    pipelineCacheUuid: Buffer.from(general.pipelineCacheUUID).toString("hex"),
    pciAddress: extensions.has("VK_EXT_pci_bus_info") ? formatPciAddress(pci) : undefined,
    extensions,
    limits: {
      workgroupInvocations: limits.maxComputeWorkGroupInvocations,
      workgroupCount: limits.maxComputeWorkGroupCount,
      sharedMemoryBytes: limits.maxComputeSharedMemorySize,
      storageBufferRange: limits.maxStorageBufferRange,
      allocationBytes: eleven.maxMemoryAllocationSize,
      pushConstantBytes: limits.maxPushConstantsSize,
      nonCoherentAtomBytes: limits.nonCoherentAtomSize,
      timestampPeriodNs: limits.timestampPeriod,
    },
    subgroup: {
      size: eleven.subgroupSize,
      minSize: computeSizes ? sizeControl.minSubgroupSize : eleven.subgroupSize,
      maxSize: computeSizes ? sizeControl.maxSubgroupSize : eleven.subgroupSize,
      sizeControl: features.sizeControl && computeSizes,
      arithmetic: (operations & SubgroupFeature.ARITHMETIC) !== 0,
      shuffle: (operations & SubgroupFeature.SHUFFLE) !== 0,
    },
    features: {
      ...features.flags,
      integerDotProductAccelerated:
        dotProduct.integerDotProduct4x8BitPackedSignedAccelerated &&
        features.flags.integerDotProduct,
    },
    cooperativeMatrices: features.flags.cooperativeMatrix
      ? readMatrices(matrixFunctions, handle, arena)
      : [],
    ...readMemory(vk, handle, arena),
    queueFamilies: readQueueFamilies(vk, handle, arena),
  };
}

function kindOf(deviceType: number): DeviceKind {
  switch (deviceType) {
    case DeviceType.DISCRETE_GPU:
      return "discrete";
    case DeviceType.INTEGRATED_GPU:
      return "integrated";
    case DeviceType.VIRTUAL_GPU:
      return "virtual";
    case DeviceType.CPU:
      return "cpu";
    default:
      return "other";
  }
}

function formatPciAddress(pci: {
  pciDomain: number;
  pciBus: number;
  pciDevice: number;
  pciFunction: number;
}): string {
  const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");
  const slot = [hex(pci.pciDomain, 4), hex(pci.pciBus, 2), hex(pci.pciDevice, 2)].join(":");
  return `${slot}.${pci.pciFunction}`;
}

function readExtensions(vk: InstanceFunctions, handle: Address, arena: Arena): Set<string> {
  const count = arena.out();
  const call = "vkEnumerateDeviceExtensionProperties";
  check(call, vk.vkEnumerateDeviceExtensionProperties(handle, null, count.address, null));
  const list = arena.placeArray(VkExtensionProperties, count.u32());
  check(call, vk.vkEnumerateDeviceExtensionProperties(handle, null, count.address, list.address));
  return new Set(Array.from({ length: count.u32() }, (_, i) => list.read(i).extensionName));
}

function readProperties(
  vk: InstanceFunctions,
  handle: Address,
  arena: Arena,
  extensions: ReadonlySet<string>,
  modern: boolean,
) {
  let next: Address | null = null;
  const dotProduct = arena.place(VkPhysicalDeviceShaderIntegerDotProductProperties, {
    pNext: next,
  });
  if (extensions.has("VK_KHR_shader_integer_dot_product")) next = dotProduct.address;
  const pci = arena.place(VkPhysicalDevicePCIBusInfoPropertiesEXT, { pNext: next });
  if (extensions.has("VK_EXT_pci_bus_info")) next = pci.address;
  const sizeControl = arena.place(VkPhysicalDeviceSubgroupSizeControlProperties, { pNext: next });
  if (extensions.has("VK_EXT_subgroup_size_control")) next = sizeControl.address;
  const twelve = arena.place(VkPhysicalDeviceVulkan12Properties, { pNext: next });
  const eleven = arena.place(VkPhysicalDeviceVulkan11Properties, { pNext: twelve.address });
  const general = arena.place(VkPhysicalDeviceProperties2, modern ? { pNext: eleven.address } : {});
  if (modern) vk.vkGetPhysicalDeviceProperties2(handle, general.address);
  const basic = arena.place(VkPhysicalDeviceProperties);
  vk.vkGetPhysicalDeviceProperties(handle, basic.address);
  return {
    general: basic.read(),
    eleven: eleven.read(),
    twelve: twelve.read(),
    sizeControl: sizeControl.read(),
    dotProduct: dotProduct.read(),
    pci: pci.read(),
  };
}

function readFeatures(
  vk: InstanceFunctions,
  handle: Address,
  arena: Arena,
  extensions: ReadonlySet<string>,
  modern: boolean,
) {
  let next: Address | null = null;
  const matrix = arena.place(VkPhysicalDeviceCooperativeMatrixFeaturesKHR, { pNext: next });
  if (extensions.has("VK_KHR_cooperative_matrix")) next = matrix.address;
  const dotProduct = arena.place(VkPhysicalDeviceShaderIntegerDotProductFeatures, { pNext: next });
  if (extensions.has("VK_KHR_shader_integer_dot_product")) next = dotProduct.address;
  const sizeControl = arena.place(VkPhysicalDeviceSubgroupSizeControlFeatures, { pNext: next });
  if (extensions.has("VK_EXT_subgroup_size_control")) next = sizeControl.address;
  const eleven = arena.place(VkPhysicalDeviceVulkan11Features, { pNext: next });
  const twelve = arena.place(VkPhysicalDeviceVulkan12Features, { pNext: eleven.address });
  const general = arena.place(VkPhysicalDeviceFeatures2, { pNext: twelve.address });
  if (modern) vk.vkGetPhysicalDeviceFeatures2(handle, general.address);
  const core = general.read().features;
  const in12 = twelve.read();
  return {
    sizeControl: sizeControl.read().subgroupSizeControl,
    flags: {
      bufferDeviceAddress: in12.bufferDeviceAddress,
      timelineSemaphore: in12.timelineSemaphore,
      float16: in12.shaderFloat16,
      int8: in12.shaderInt8,
      int16: core.shaderInt16,
      int64: core.shaderInt64,
      storage8: in12.storageBuffer8BitAccess,
      storage16: eleven.read().storageBuffer16BitAccess,
      memoryModel: in12.vulkanMemoryModel && in12.vulkanMemoryModelDeviceScope,
      integerDotProduct: dotProduct.read().shaderIntegerDotProduct,
      cooperativeMatrix: matrix.read().cooperativeMatrix,
      pipelineStatistics: extensions.has("VK_KHR_pipeline_executable_properties"),
    },
  };
}

function readMatrices(
  vk: CooperativeMatrixFunctions | undefined,
  handle: Address,
  arena: Arena,
): CooperativeMatrix[] {
  if (vk === undefined) return [];
  const count = arena.out();
  const call = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";
  check(call, vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(handle, count.address, null));
  const list = arena.placeArray(VkCooperativeMatrixPropertiesKHR, count.u32());
  check(
    call,
    vk.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR(handle, count.address, list.address),
  );
  return Array.from({ length: count.u32() }, (_, i) => list.read(i))
    .filter((shape) => shape.scope === Scope.SUBGROUP && shape.AType === shape.BType)
    .map((shape) => ({
      m: shape.MSize,
      n: shape.NSize,
      k: shape.KSize,
      operands: operandNames[shape.AType] ?? "other",
      accumulator: accumulatorNames[shape.ResultType] ?? "other",
    }));
}

const operandNames: Readonly<Record<number, CooperativeMatrix["operands"]>> = {
  [ComponentType.FLOAT16]: "f16",
  [ComponentType.SINT8]: "s8",
  [ComponentType.UINT8]: "u8",
};
const accumulatorNames: Readonly<Record<number, CooperativeMatrix["accumulator"]>> = {
  [ComponentType.FLOAT32]: "f32",
  [ComponentType.FLOAT16]: "f16",
  [ComponentType.SINT32]: "s32",
};

function readMemory(vk: InstanceFunctions, handle: Address, arena: Arena) {
  const memory = arena.place(VkPhysicalDeviceMemoryProperties2);
  vk.vkGetPhysicalDeviceMemoryProperties2(handle, memory.address);
  const { memoryHeaps, memoryHeapCount, memoryTypes, memoryTypeCount } =
    memory.read().memoryProperties;
  return {
    heaps: memoryHeaps.slice(0, memoryHeapCount).map((heap) => ({
      byteSize: heap.size,
      deviceLocal: (heap.flags & MemoryHeapFlag.DEVICE_LOCAL) !== 0,
    })),
    memoryTypes: memoryTypes.slice(0, memoryTypeCount).map((type) => ({
      heapIndex: type.heapIndex,
      properties: type.propertyFlags,
    })),
  };
}

function readQueueFamilies(vk: InstanceFunctions, handle: Address, arena: Arena): QueueFamily[] {
  const count = arena.out();
  vk.vkGetPhysicalDeviceQueueFamilyProperties(handle, count.address, null);
  const list = arena.placeArray(VkQueueFamilyProperties, count.u32());
  vk.vkGetPhysicalDeviceQueueFamilyProperties(handle, count.address, list.address);
  return Array.from({ length: count.u32() }, (_, i) => list.read(i)).map((family) => ({
    compute: (family.queueFlags & QueueFlag.COMPUTE) !== 0,
    graphics: (family.queueFlags & QueueFlag.GRAPHICS) !== 0,
    timestampBits: family.timestampValidBits,
  }));
}
