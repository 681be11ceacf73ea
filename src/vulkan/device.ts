/** A logical device with its one compute queue: the owner of everything that is created on it. */
import { Arena, type Address } from "./arena.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Instance, PhysicalDevice } from "./instance.ts";
import {
  linkDevice,
  linkExecutables,
  type DeviceFunctions,
  type ExecutableFunctions,
} from "./library.ts";
import { check, Result } from "./result.ts";
import {
  VkDeviceCreateInfo,
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR,
  VkPhysicalDeviceFeatures2,
  VkPhysicalDeviceMemoryBudgetPropertiesEXT,
  VkPhysicalDeviceMemoryProperties2,
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR,
  VkPhysicalDeviceShaderIntegerDotProductFeatures,
  VkPhysicalDeviceSubgroupSizeControlFeatures,
  VkPhysicalDeviceVulkan11Features,
  VkPhysicalDeviceVulkan12Features,
} from "./structs.ts";

export interface DeviceOptions {
  /** Lets pipelines tell their registers, spills and occupancy. */
  readonly statistics?: boolean;
}

export interface HeapBudget {
  readonly byteSize: number;
  readonly deviceLocal: boolean;
  /** Bytes that this process may still take, as the driver estimates. */
  readonly freeBytes: number;
}

export class Device {
  readonly instance: Instance;
  readonly physical: PhysicalDevice;
  readonly capabilities: Capabilities;
  readonly handle: Address;
  readonly queue: Address;
  readonly queueFamilyIndex: number;
  readonly vk: DeviceFunctions;
  readonly executables: ExecutableFunctions | undefined;
  readonly arena: Arena;

  private constructor(
    instance: Instance,
    physical: PhysicalDevice,
    handle: Address,
    queueFamilyIndex: number,
    statistics: boolean,
  ) {
    this.instance = instance;
    this.physical = physical;
    this.capabilities = physical.capabilities;
    this.handle = handle;
    this.queueFamilyIndex = queueFamilyIndex;
    this.vk = linkDevice(instance.vk, handle);
    this.executables = statistics ? linkExecutables(instance.vk, handle) : undefined;
    this.arena = instance.arena;
    using _ = this.arena.frame();
    const queue = this.arena.out();
    this.vk.vkGetDeviceQueue(handle, queueFamilyIndex, 0, queue.address);
    this.queue = queue.pointer();
  }

  /** Creates the device with every optional feature on that a kernel variant may use. */
  static open(instance: Instance, physical: PhysicalDevice, options: DeviceOptions = {}): Device {
    const { arena } = instance;
    const { capabilities } = physical;
    using _ = arena.frame();
    const statistics = options.statistics === true && capabilities.features.pipelineStatistics;
    const family = computeFamily(capabilities);
    const features = placeFeatures(arena, capabilities, statistics);
    const info = arena.put(VkDeviceCreateInfo, {
      pNext: features.next,
      pQueueCreateInfos: [{ queueFamilyIndex: family, pQueuePriorities: [1] }],
      ppEnabledExtensionNames: features.extensions,
    });
    const handle = arena.out();
    const result = instance.vk.vkCreateDevice(physical.handle, info, null, handle.address);
    check("vkCreateDevice", result, capabilities.name);
    return new Device(instance, physical, handle.pointer(), family, statistics);
  }

  /** Free memory right now (VK_EXT_memory_budget), else the heaps' sizes. */
  budget(): HeapBudget[] {
    using _ = this.arena.frame();
    const { heaps, extensions } = this.capabilities;
    const known = extensions.has("VK_EXT_memory_budget");
    const budget = this.arena.place(VkPhysicalDeviceMemoryBudgetPropertiesEXT);
    const memory = this.arena.put(
      VkPhysicalDeviceMemoryProperties2,
      known ? { pNext: budget.address } : {},
    );
    this.instance.vk.vkGetPhysicalDeviceMemoryProperties2(this.physical.handle, memory);
    const { heapBudget, heapUsage } = budget.read();
    return heaps.map((heap, i) => ({
      ...heap,
      freeBytes: known
        ? Math.max(0, Math.min((heapBudget[i] ?? 0) - (heapUsage[i] ?? 0), heap.byteSize))
        : heap.byteSize,
    }));
  }

  /** On a device that is lost nothing runs any more, and all may be freed. */
  waitIdle(): void {
    const result = this.vk.vkDeviceWaitIdle(this.handle);
    if (result !== Result.ERROR_DEVICE_LOST) check("vkDeviceWaitIdle", result);
  }

  /** Everything created on the device must be destroyed before. */
  close(): void {
    this.vk.vkDestroyDevice(this.handle, null);
  }
}

/** A queue family without graphics leaves the desktop's own queue alone. */
function computeFamily(capabilities: Capabilities): number {
  const { queueFamilies } = capabilities;
  const dedicated = queueFamilies.findIndex(
    ({ compute, graphics, timestampBits }) => compute && !graphics && timestampBits > 0,
  );
  return dedicated >= 0 ? dedicated : queueFamilies.findIndex((family) => family.compute);
}

function placeFeatures(
  arena: Arena,
  { extensions, features, subgroup }: Capabilities,
  statistics: boolean,
) {
  const enabled: string[] = [];
  let next: Address | null = null;
  const enable = (extension: string, when: boolean, feature?: () => Address) => {
    if (!when || !extensions.has(extension)) return;
    enabled.push(extension);
    if (feature !== undefined) next = feature();
  };
  enable("VK_EXT_memory_budget", true);
  enable("VK_KHR_shader_integer_dot_product", features.integerDotProduct, () =>
    arena.put(VkPhysicalDeviceShaderIntegerDotProductFeatures, {
      pNext: next,
      shaderIntegerDotProduct: true,
    }),
  );
  enable("VK_EXT_subgroup_size_control", subgroup.sizeControl, () =>
    arena.put(VkPhysicalDeviceSubgroupSizeControlFeatures, {
      pNext: next,
      subgroupSizeControl: true,
      computeFullSubgroups: true,
    }),
  );
  enable("VK_KHR_cooperative_matrix", features.cooperativeMatrix, () =>
    arena.put(VkPhysicalDeviceCooperativeMatrixFeaturesKHR, {
      pNext: next,
      cooperativeMatrix: true,
    }),
  );
  enable("VK_KHR_pipeline_executable_properties", statistics, () =>
    arena.put(VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR, {
      pNext: next,
      pipelineExecutableInfo: true,
    }),
  );
  next = arena.put(VkPhysicalDeviceVulkan11Features, {
    pNext: next,
    storageBuffer16BitAccess: features.storage16,
  });
  next = arena.put(VkPhysicalDeviceVulkan12Features, {
    pNext: next,
    bufferDeviceAddress: true,
    timelineSemaphore: true,
    storageBuffer8BitAccess: features.storage8,
    shaderFloat16: features.float16,
    shaderInt8: features.int8,
    vulkanMemoryModel: features.memoryModel,
    vulkanMemoryModelDeviceScope: features.memoryModel,
  });
  next = arena.put(VkPhysicalDeviceFeatures2, {
    pNext: next,
    features: { shaderInt16: features.int16, shaderInt64: features.int64 },
  });
  return { next, extensions: enabled };
}
