/**
 * The Vulkan loader: its names on each platform, and the prototypes of every function that zinc
 * calls. Functions are resolved through vkGetInstanceProcAddr, so that an old loader's missing
 * exports do no harm.
 */
import { dlopen, linkSymbols, type FFITypeOrString, type Pointer } from "bun:ffi";
import { UserError } from "../errors.ts";
import type { Address } from "./arena.ts";

const loaderNames: Readonly<Record<string, readonly string[]>> = {
  linux: ["libvulkan.so.1", "libvulkan.so"],
  win32: ["vulkan-1.dll"],
  darwin: [
    "libvulkan.1.dylib",
    "/opt/homebrew/lib/libvulkan.1.dylib",
    "/usr/local/lib/libvulkan.1.dylib",
    "libMoltenVK.dylib",
    "/opt/homebrew/lib/libMoltenVK.dylib",
  ],
};

const globalFunctions = {
  vkEnumerateInstanceVersion: { args: ["ptr"], returns: "i32" },
  vkEnumerateInstanceLayerProperties: { args: ["ptr", "ptr"], returns: "i32" },
  vkEnumerateInstanceExtensionProperties: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
  vkCreateInstance: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
} as const;

const instanceFunctions = {
  vkDestroyInstance: { args: ["ptr", "ptr"], returns: "void" },
  vkEnumeratePhysicalDevices: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
  vkGetPhysicalDeviceProperties: { args: ["ptr", "ptr"], returns: "void" },
  vkGetPhysicalDeviceProperties2: { args: ["ptr", "ptr"], returns: "void" },
  vkGetPhysicalDeviceFeatures2: { args: ["ptr", "ptr"], returns: "void" },
  vkGetPhysicalDeviceMemoryProperties2: { args: ["ptr", "ptr"], returns: "void" },
  vkGetPhysicalDeviceQueueFamilyProperties: { args: ["ptr", "ptr", "ptr"], returns: "void" },
  vkEnumerateDeviceExtensionProperties: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkCreateDevice: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkGetDeviceProcAddr: { args: ["ptr", "cstring"], returns: "ptr" },
} as const;

const cooperativeMatrixFunctions = {
  vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR: {
    args: ["ptr", "ptr", "ptr"],
    returns: "i32",
  },
} as const;

const deviceFunctions = {
  vkDestroyDevice: { args: ["ptr", "ptr"], returns: "void" },
  vkDeviceWaitIdle: { args: ["ptr"], returns: "i32" },
  vkGetDeviceQueue: { args: ["ptr", "u32", "u32", "ptr"], returns: "void" },
  vkCreateBuffer: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkDestroyBuffer: { args: ["ptr", "u64", "ptr"], returns: "void" },
  vkGetBufferMemoryRequirements: { args: ["ptr", "u64", "ptr"], returns: "void" },
  vkGetBufferDeviceAddress: { args: ["ptr", "ptr"], returns: "u64" },
  vkAllocateMemory: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkFreeMemory: { args: ["ptr", "u64", "ptr"], returns: "void" },
  vkBindBufferMemory: { args: ["ptr", "u64", "u64", "u64"], returns: "i32" },
  vkMapMemory: { args: ["ptr", "u64", "u64", "u64", "u32", "ptr"], returns: "i32" },
  vkInvalidateMappedMemoryRanges: { args: ["ptr", "u32", "ptr"], returns: "i32" },
  vkCreateShaderModule: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkDestroyShaderModule: { args: ["ptr", "u64", "ptr"], returns: "void" },
  vkCreatePipelineLayout: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkDestroyPipelineLayout: { args: ["ptr", "u64", "ptr"], returns: "void" },
  vkCreateComputePipelines: { args: ["ptr", "u64", "u32", "ptr", "ptr", "ptr"], returns: "i32" },
  vkDestroyPipeline: { args: ["ptr", "u64", "ptr"], returns: "void" },
  vkCreatePipelineCache: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkGetPipelineCacheData: { args: ["ptr", "u64", "ptr", "ptr"], returns: "i32" },
  vkDestroyPipelineCache: { args: ["ptr", "u64", "ptr"], returns: "void" },
  vkCreateCommandPool: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkDestroyCommandPool: { args: ["ptr", "u64", "ptr"], returns: "void" },
  vkAllocateCommandBuffers: { args: ["ptr", "ptr", "ptr"], returns: "i32" },
  vkFreeCommandBuffers: { args: ["ptr", "u64", "u32", "ptr"], returns: "void" },
  vkBeginCommandBuffer: { args: ["ptr", "ptr"], returns: "i32" },
  vkEndCommandBuffer: { args: ["ptr"], returns: "i32" },
  vkCmdBindPipeline: { args: ["ptr", "i32", "u64"], returns: "void" },
  vkCmdPushConstants: { args: ["ptr", "u64", "u32", "u32", "u32", "ptr"], returns: "void" },
  vkCmdDispatch: { args: ["ptr", "u32", "u32", "u32"], returns: "void" },
  vkCmdDispatchIndirect: { args: ["ptr", "u64", "u64"], returns: "void" },
  vkCmdPipelineBarrier: {
    args: ["ptr", "u32", "u32", "u32", "u32", "ptr", "u32", "ptr", "u32", "ptr"],
    returns: "void",
  },
  vkCmdCopyBuffer: { args: ["ptr", "u64", "u64", "u32", "ptr"], returns: "void" },
  vkCmdFillBuffer: { args: ["ptr", "u64", "u64", "u64", "u32"], returns: "void" },
  vkCmdResetQueryPool: { args: ["ptr", "u64", "u32", "u32"], returns: "void" },
  vkCmdWriteTimestamp: { args: ["ptr", "u32", "u64", "u32"], returns: "void" },
  vkCreateQueryPool: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkDestroyQueryPool: { args: ["ptr", "u64", "ptr"], returns: "void" },
  vkGetQueryPoolResults: {
    args: ["ptr", "u64", "u32", "u32", "u64", "ptr", "u64", "u32"],
    returns: "i32",
  },
  vkCreateSemaphore: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkDestroySemaphore: { args: ["ptr", "u64", "ptr"], returns: "void" },
  vkWaitSemaphores: { args: ["ptr", "ptr", "u64"], returns: "i32" },
  vkGetSemaphoreCounterValue: { args: ["ptr", "u64", "ptr"], returns: "i32" },
  vkQueueSubmit: { args: ["ptr", "u32", "ptr", "u64"], returns: "i32" },
} as const;

const executableFunctions = {
  vkGetPipelineExecutablePropertiesKHR: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
  vkGetPipelineExecutableStatisticsKHR: { args: ["ptr", "ptr", "ptr", "ptr"], returns: "i32" },
} as const;

type Prototypes = Readonly<
  Record<string, { readonly args: readonly FFITypeOrString[]; readonly returns: FFITypeOrString }>
>;
type Linked<P extends Prototypes> = ReturnType<typeof linkSymbols<P>>["symbols"];

export type GlobalFunctions = Linked<typeof globalFunctions>;
export type InstanceFunctions = Linked<typeof instanceFunctions>;
export type DeviceFunctions = Linked<typeof deviceFunctions>;
export type CooperativeMatrixFunctions = Linked<typeof cooperativeMatrixFunctions>;
export type ExecutableFunctions = Linked<typeof executableFunctions>;

export interface Loader extends GlobalFunctions {
  /** The name under which the loader was found. */
  readonly name: string;
  instanceFunctions(instance: Address): InstanceFunctions;
  /** VK_KHR_cooperative_matrix's query, where the instance knows it. */
  cooperativeMatrixFunctions(instance: Address): CooperativeMatrixFunctions | undefined;
}

/** Opens the system's Vulkan loader. Throws a "device" error where there is none. */
export function openLoader(): Loader {
  const names = loaderNames[process.platform] ?? [];
  for (const name of names) {
    const library = tryOpen(name);
    if (library === undefined) continue;
    const find = (instance: Address | null) => (symbol: string) =>
      library.symbols.vkGetInstanceProcAddr(instance, symbol);
    return {
      name,
      ...link(globalFunctions, find(null)),
      instanceFunctions: (instance) => link(instanceFunctions, find(instance)),
      cooperativeMatrixFunctions: (instance) => tryLink(cooperativeMatrixFunctions, find(instance)),
    };
  }
  throw new UserError(
    "device",
    `no Vulkan loader found (tried ${names.join(", ") || process.platform})`,
    "install it (Debian, Ubuntu: libvulkan1; Fedora: vulkan-loader; Arch: vulkan-icd-loader; " +
      "Windows: your GPU's driver)",
  );
}

/** The functions of one device, resolved past the loader's own dispatch. */
export function linkDevice(instance: InstanceFunctions, device: Address): DeviceFunctions {
  return link(deviceFunctions, deviceResolver(instance, device));
}

/** VK_KHR_pipeline_executable_properties, where it was enabled. */
export function linkExecutables(
  instance: InstanceFunctions,
  device: Address,
): ExecutableFunctions | undefined {
  return tryLink(executableFunctions, deviceResolver(instance, device));
}

type Resolve = (symbol: string) => Pointer | bigint | null;

function deviceResolver(instance: InstanceFunctions, device: Address): Resolve {
  return (symbol) => instance.vkGetDeviceProcAddr(device, symbol);
}

function tryOpen(name: string) {
  try {
    return dlopen(name, { vkGetInstanceProcAddr: { args: ["ptr", "cstring"], returns: "ptr" } });
  } catch {
    return undefined;
  }
}

function tryLink<P extends Prototypes>(prototypes: P, resolve: Resolve): Linked<P> | undefined {
  const found = Object.keys(prototypes).every((name) => resolve(name) !== null);
  return found ? link(prototypes, resolve) : undefined;
}

function link<P extends Prototypes>(prototypes: P, resolve: Resolve): Linked<P> {
  const symbols: Record<string, object> = {};
  for (const [name, prototype] of Object.entries(prototypes)) {
    const pointer = resolve(name);
    if (pointer === null) {
      throw new UserError(
        "device",
        `the Vulkan driver lacks ${name}`,
        "update the driver to one with Vulkan 1.2",
      );
    }
    symbols[name] = { ...prototype, ptr: pointer };
  }
  return linkSymbols(symbols as unknown as P).symbols;
}
