/** VkResult → an error of one line that names the call, what happened and what to do. */
import { UserError, type ErrorKind } from "../errors.ts";

/** VkResult values that zinc treats specially. */
export const Result = {
  SUCCESS: 0,
  NOT_READY: 1,
  TIMEOUT: 2,
  INCOMPLETE: 5,
  ERROR_OUT_OF_HOST_MEMORY: -1,
  ERROR_OUT_OF_DEVICE_MEMORY: -2,
  ERROR_DEVICE_LOST: -4,
  ERROR_LAYER_NOT_PRESENT: -6,
  ERROR_INCOMPATIBLE_DRIVER: -9,
} as const;

interface Meaning {
  readonly name: string;
  readonly kind: ErrorKind;
  readonly says: string;
  readonly remedy?: string;
}

const meanings: Readonly<Record<number, Meaning>> = {
  1: { name: "VK_NOT_READY", kind: "failed", says: "the result was not ready" },
  2: { name: "VK_TIMEOUT", kind: "failed", says: "the device did not finish in time" },
  [-1]: {
    name: "VK_ERROR_OUT_OF_HOST_MEMORY",
    kind: "memory",
    says: "the system's memory is full",
    remedy: "close other programs or take a smaller model",
  },
  [-2]: {
    name: "VK_ERROR_OUT_OF_DEVICE_MEMORY",
    kind: "memory",
    says: "the device's memory is full",
    remedy: "close programs that use the GPU, shorten the context with -c, or take a smaller model",
  },
  [-3]: {
    name: "VK_ERROR_INITIALIZATION_FAILED",
    kind: "device",
    says: "the driver failed to start",
  },
  [-4]: {
    name: "VK_ERROR_DEVICE_LOST",
    kind: "failed",
    says: "the device stopped working or was reset",
    remedy: "look into the system's log (dmesg) for the reason",
  },
  [-5]: { name: "VK_ERROR_MEMORY_MAP_FAILED", kind: "memory", says: "memory could not be mapped" },
  [-6]: {
    name: "VK_ERROR_LAYER_NOT_PRESENT",
    kind: "device",
    says: "a layer is not installed",
    remedy: "install the Vulkan validation layers or unset ZINC_VALIDATE",
  },
  [-7]: { name: "VK_ERROR_EXTENSION_NOT_PRESENT", kind: "device", says: "an extension is missing" },
  [-8]: { name: "VK_ERROR_FEATURE_NOT_PRESENT", kind: "device", says: "a feature is missing" },
  [-9]: {
    name: "VK_ERROR_INCOMPATIBLE_DRIVER",
    kind: "device",
    says: "there is no usable Vulkan driver",
    remedy: "install your GPU's Vulkan driver (Debian, Ubuntu: mesa-vulkan-drivers)",
  },
  [-10]: { name: "VK_ERROR_TOO_MANY_OBJECTS", kind: "memory", says: "too many allocations" },
  [-13]: { name: "VK_ERROR_UNKNOWN", kind: "failed", says: "the driver gave no reason" },
};

/** A Vulkan call failed. */
export class VulkanError extends UserError {
  readonly result: number;

  constructor(call: string, result: number, about?: string) {
    const meaning = meanings[result];
    const subject = about === undefined ? call : `${call} (${about})`;
    super(
      meaning?.kind ?? "failed",
      `${subject}: ${meaning?.says ?? "the driver is at fault"} [${meaning?.name ?? result}]`,
      meaning?.remedy,
    );
    this.result = result;
  }
}

/** Throws unless the call succeeded. `about` names what the call was for. */
export function check(call: string, result: number, about?: string): void {
  if (result !== Result.SUCCESS) throw new VulkanError(call, result, about);
}
