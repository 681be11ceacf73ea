/** What a person reads when a Vulkan call fails. */
import { describe, expect, test } from "bun:test";
import { check, VulkanError } from "../../src/vulkan/result.ts";

function textOf(result: number, about?: string): string {
  const { kind, text } = new VulkanError("vkAllocateMemory", result, about);
  return `${kind}: ${text}`;
}

test.each([
  [
    -1,
    "memory: vkAllocateMemory: the system's memory is full [VK_ERROR_OUT_OF_HOST_MEMORY]; " +
      "close other programs or take a smaller model",
  ],
  [
    -2,
    "memory: vkAllocateMemory: the device's memory is full [VK_ERROR_OUT_OF_DEVICE_MEMORY]; " +
      "close programs that use the GPU, shorten the context with -c, or take a smaller model",
  ],
  [
    -4,
    "failed: vkAllocateMemory: the device stopped working or was reset [VK_ERROR_DEVICE_LOST]; " +
      "look into the system's log (dmesg) for the reason",
  ],
  [
    -9,
    "device: vkAllocateMemory: there is no usable Vulkan driver [VK_ERROR_INCOMPATIBLE_DRIVER]; " +
      "install your GPU's Vulkan driver (Debian, Ubuntu: mesa-vulkan-drivers)",
  ],
  [-13, "failed: vkAllocateMemory: the driver gave no reason [VK_ERROR_UNKNOWN]"],
  // A code that no list has: the number is all there is to say.
  [-1000011001, "failed: vkAllocateMemory: the driver is at fault [-1000011001]"],
])("result %d", (result, text) => {
  expect(textOf(result)).toBe(text);
});

describe("check", () => {
  test("lets success pass", () => {
    expect(() => check("vkCreateBuffer", 0)).not.toThrow();
  });

  test("names the call, what it was for, and keeps the code", () => {
    try {
      check("vkCreateBuffer", -2, "3.50 GB for the weights");
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(VulkanError);
      expect((error as VulkanError).result).toBe(-2);
      expect((error as VulkanError).message).toBe(
        "vkCreateBuffer (3.50 GB for the weights): the device's memory is full " +
          "[VK_ERROR_OUT_OF_DEVICE_MEMORY]",
      );
    }
  });
});
