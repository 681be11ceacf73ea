/** The validation layer is heard: a layer that fails to load says nothing at all. */
import { expect, test } from "bun:test";
import { BufferUsage } from "../../src/vulkan/constants.ts";
import { VkBufferCreateInfo } from "../../src/vulkan/structs.ts";
import { takeValidationMessages, validationRequested } from "../../src/vulkan/validation.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";

test.skipIf(noGpu !== undefined || !validationRequested)(
  "an error that is made on purpose is reported once, with its number in the specification",
  () => {
    const { vk, arena, handle } = testGpu().device;
    expect(takeValidationMessages()).toBe("");
    using _ = arena.frame();
    const info = arena.put(VkBufferCreateInfo, { size: 0, usage: BufferUsage.STORAGE_BUFFER });
    const buffer = arena.out();
    vk.vkCreateBuffer(handle, info, null, buffer.address);
    vk.vkDestroyBuffer(handle, buffer.u64(), null);
    expect(takeValidationMessages()).toContain("VUID-VkBufferCreateInfo-size-00912");
    expect(takeValidationMessages()).toBe("");
  },
);
