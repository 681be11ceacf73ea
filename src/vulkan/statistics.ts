/** What a driver tells of a compiled pipeline: registers, spills, occupancy, by its own names. */
import { invariant } from "../errors.ts";
import type { Device } from "./device.ts";
import type { Pipeline } from "./pipeline.ts";
import { check } from "./result.ts";
import {
  VkPipelineExecutableInfoKHR,
  VkPipelineExecutablePropertiesKHR,
  VkPipelineExecutableStatisticKHR,
  VkPipelineInfoKHR,
} from "./structs.ts";

export interface PipelineStatistics {
  readonly subgroupSize: number;
  readonly values: Readonly<Record<string, number>>;
}

/** Of a pipeline that was made on a device opened with `statistics`. */
export function readStatistics(device: Device, pipeline: Pipeline): PipelineStatistics {
  const { executables, arena, handle } = device;
  invariant(executables !== undefined, `${pipeline.label}: the device gives no statistics`);
  using _ = arena.frame();
  const info = arena.put(VkPipelineInfoKHR, { pipeline: pipeline.handle });
  const count = arena.out();
  const list = "vkGetPipelineExecutablePropertiesKHR";
  check(list, executables[list](handle, info, count.address, null));
  // A compute pipeline is one executable.
  const properties = arena.placeArray(VkPipelineExecutablePropertiesKHR, count.u32());
  check(list, executables[list](handle, info, count.address, properties.address));
  const first = arena.put(VkPipelineExecutableInfoKHR, { pipeline: pipeline.handle });
  const read = "vkGetPipelineExecutableStatisticsKHR";
  check(read, executables[read](handle, first, count.address, null));
  const statistics = arena.placeArray(VkPipelineExecutableStatisticKHR, count.u32());
  check(read, executables[read](handle, first, count.address, statistics.address));
  const entries = Array.from({ length: count.u32() }, (_unused, i) => statistics.read(i));
  return {
    subgroupSize: properties.read(0).subgroupSize,
    values: Object.fromEntries(entries.map(({ name, value }) => [name, value])),
  };
}
