/**
 * Compute pipelines: made from SPIR-V on first use, kept by everything that tells two variants
 * apart.
 */
import { invariant } from "../errors.ts";
import { PipelineCreateFlag, PipelineShaderStageCreateFlag, ShaderStage } from "./constants.ts";
import type { Device } from "./device.ts";
import { PipelineCache } from "./pipeline-cache.ts";
import { check, VulkanError } from "./result.ts";
import {
  VkComputePipelineCreateInfo,
  VkPipelineLayoutCreateInfo,
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo,
  VkShaderModuleCreateInfo,
} from "./structs.ts";

/** What a pipeline is made of. */
export interface PipelineRecipe {
  /** The module's unique name, also used in messages. */
  readonly name: string;
  readonly spirv: Uint8Array;
  /** Values of the specialization constants 0, 1, 2 …; all are 32-bit unsigned. */
  readonly constants?: readonly number[];
  /** Ask for this subgroup size, full subgroups included; only where the device can. */
  readonly subgroupSize?: number;
}

export interface Pipeline {
  readonly handle: bigint;
  /** Name and constants, for messages and profiles. */
  readonly label: string;
}

/** The minimum that Vulkan guarantees; every kernel's parameters fit. */
export const pushConstantBytesMax = 128;

export class Pipelines {
  readonly device: Device;
  /** One layout serves all: no descriptors, only push constants. */
  readonly layout: bigint;
  readonly #cache: PipelineCache;
  readonly #pipelines = new Map<string, Pipeline>();

  /** `cacheFolder`: where compiled pipelines are kept between runs; none if undefined. */
  constructor(device: Device, cacheFolder?: string, warn?: (message: string) => void) {
    const { vk, arena } = device;
    using _ = arena.frame();
    this.device = device;
    this.#cache = new PipelineCache(device, cacheFolder, warn);
    const info = arena.put(VkPipelineLayoutCreateInfo, {
      pPushConstantRanges: [
        { stageFlags: ShaderStage.COMPUTE, offset: 0, size: pushConstantBytesMax },
      ],
    });
    const layout = arena.out();
    check(
      "vkCreatePipelineLayout",
      vk.vkCreatePipelineLayout(device.handle, info, null, layout.address),
    );
    this.layout = layout.u64();
  }

  /** How many have been made. */
  get count(): number {
    return this.#pipelines.size;
  }

  get(recipe: PipelineRecipe): Pipeline {
    const { name, constants = [], subgroupSize } = recipe;
    const suffix = subgroupSize === undefined ? "" : ` wave${subgroupSize}`;
    const label =
      constants.length === 0 ? `${name}${suffix}` : `${name}(${constants.join()})${suffix}`;
    const known = this.#pipelines.get(label);
    if (known !== undefined) return known;
    const pipeline = { handle: this.#create(recipe, label), label };
    this.#pipelines.set(label, pipeline);
    return pipeline;
  }

  /** Writes the cache file if anything new was compiled. */
  save(): void {
    this.#cache.save();
  }

  close(): void {
    const { vk, handle } = this.device;
    for (const pipeline of this.#pipelines.values())
      vk.vkDestroyPipeline(handle, pipeline.handle, null);
    vk.vkDestroyPipelineLayout(handle, this.layout, null);
    this.#cache.close();
  }

  #create({ spirv, constants = [], subgroupSize }: PipelineRecipe, label: string): bigint {
    const { vk, arena, handle, capabilities, executables } = this.device;
    using _ = arena.frame();
    const { minSize, maxSize, sizeControl } = capabilities.subgroup;
    invariant(
      subgroupSize === undefined ||
        (sizeControl && subgroupSize >= minSize && subgroupSize <= maxSize),
      `${label}: subgroup size ${subgroupSize} of ${minSize}…${maxSize}`,
    );
    const module = arena.out();
    const code = { codeSize: spirv.length, pCode: arena.putBytes(spirv) };
    const moduleInfo = arena.put(VkShaderModuleCreateInfo, code);
    check(
      "vkCreateShaderModule",
      vk.vkCreateShaderModule(handle, moduleInfo, null, module.address),
      label,
    );
    const info = arena.put(VkComputePipelineCreateInfo, {
      flags: executables === undefined ? 0 : PipelineCreateFlag.CAPTURE_STATISTICS_KHR,
      stage: {
        pNext:
          subgroupSize === undefined
            ? null
            : arena.put(VkPipelineShaderStageRequiredSubgroupSizeCreateInfo, {
                requiredSubgroupSize: subgroupSize,
              }),
        flags:
          subgroupSize === undefined ? 0 : PipelineShaderStageCreateFlag.REQUIRE_FULL_SUBGROUPS,
        stage: ShaderStage.COMPUTE,
        module: module.u64(),
        pName: "main",
        pSpecializationInfo: {
          pMapEntries: constants.map((_value, i) => ({ constantID: i, offset: i * 4, size: 4 })),
          dataSize: constants.length * 4,
          pData: arena.putBytes(new Uint8Array(new Uint32Array(constants).buffer)),
        },
      },
      layout: this.layout,
    });
    const pipeline = arena.out();
    const result = vk.vkCreateComputePipelines(
      handle,
      this.#cache.handle,
      1,
      info,
      null,
      pipeline.address,
    );
    vk.vkDestroyShaderModule(handle, module.u64(), null);
    if (result !== 0) throw new VulkanError("vkCreateComputePipelines", result, label);
    this.#cache.grew();
    return pipeline.u64();
  }
}
