/** How fast the device reads its memory: measured, never taken from a table. */
import { DeviceBuffer, type BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { u32 } from "../vulkan/layout.ts";
import { freeDeviceBytes } from "../vulkan/memory.ts";
import { ProgramTimer } from "../vulkan/profiler.ts";
import { Program } from "../vulkan/program.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";

export const readBandwidthKernel = defineKernel("read_bandwidth", {
  source: reads,
  sums: writes,
  quadCount: u32,
});

const workgroup = 256;
const groupCount = 4096;
/** One turn of all invocations. */
const turnBytes = workgroup * groupCount * 4 * 16;
/** Far beyond any cache, and a blink of an eye even for a slow device. */
const bytesMax = 1 << 30;
const repeats = 5;
/** A card that was idle takes so long to reach its clock. */
const leastMs = 60;
const repeatsMax = 200;

/** The best of several readings, in bytes a second. Needs some free device memory. */
export function measureReadBandwidth(gpu: Gpu): number {
  const { device, pipelines, timeline } = gpu;
  const share = device.capabilities.kind === "cpu" ? 128 << 20 : bytesMax;
  const wanted = Math.min(
    share,
    freeDeviceBytes(device, 0) / 2,
    device.capabilities.limits.allocationBytes,
  );
  const byteSize = Math.max(1, Math.floor(wanted / turnBytes)) * turnBytes;
  const source = new DeviceBuffer(device, byteSize, "device", "a bandwidth measurement");
  const sums = new DeviceBuffer(device, groupCount * 4, "device", "a bandwidth measurement");
  const timer = new ProgramTimer(device);
  gpu.run("bandwidth fill", (program) => program.fill(source.slice(), 0x3c003c00));
  const program = new Program(device, pipelines, "bandwidth", { timer });
  const context = { program, pipelines, capabilities: device.capabilities };
  readBandwidth(context, source.slice(), sums.slice());
  program.seal();
  let best = Number.POSITIVE_INFINITY;
  for (let [i, total] = [0, 0]; i < repeats || (total < leastMs && i < repeatsMax); i++) {
    timeline.wait(timeline.submit(program.commands, "bandwidth"));
    const milliseconds = timer.milliseconds();
    best = Math.min(best, milliseconds);
    total += milliseconds;
  }
  program.free();
  timer.free();
  source.free();
  sums.free();
  return byteSize / (best / 1000);
}

/** Reads all of `source`, whole turns of it. */
export function readBandwidth(
  context: KernelContext,
  source: BufferSlice,
  sums: BufferSlice,
): void {
  launch(context, readBandwidthKernel, {
    shader: "read_bandwidth",
    constants: [workgroup],
    parameters: { source, sums, quadCount: source.byteSize / 16 },
    groups: [groupCount],
    label: "read bandwidth",
  });
}
