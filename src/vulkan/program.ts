/**
 * A program: an ordered list of dispatches and copies, recorded into one command buffer once and
 * submitted as often as wanted. Whatever changes between submissions lies in buffers that the
 * kernels read.
 */
import { invariant } from "../errors.ts";
import type { Address } from "./arena.ts";
import type { BufferSlice } from "./buffer.ts";
import {
  Access,
  CommandBufferUsage,
  CommandPoolCreateFlag,
  PipelineBindPoint,
  PipelineStage,
  ShaderStage,
} from "./constants.ts";
import type { Device } from "./device.ts";
import { HazardTracker, type Accesses } from "./hazards.ts";
import type { Pipeline, Pipelines } from "./pipeline.ts";
import type { Profiler, ProgramTimer } from "./profiler.ts";
import { check } from "./result.ts";
import {
  VkBufferCopy,
  VkCommandBufferAllocateInfo,
  VkCommandBufferBeginInfo,
  VkCommandPoolCreateInfo,
  VkMemoryBarrier,
} from "./structs.ts";

export type Groups = readonly [x: number, y?: number, z?: number];

export interface Dispatch extends Accesses {
  readonly pipeline: Pipeline;
  readonly pushConstants: Uint8Array;
  readonly groups: Groups;
  /** What it does, for profiles. */
  readonly label: string;
}

const { COMPUTE_SHADER, TRANSFER, HOST } = PipelineStage;
const { SHADER_READ, SHADER_WRITE, TRANSFER_READ, TRANSFER_WRITE, HOST_READ } = Access;

export class Program {
  readonly label: string;
  readonly commands: Address;
  readonly #device: Device;
  readonly #pipelines: Pipelines;
  readonly #pool: bigint;
  readonly #hazards = new HazardTracker();
  readonly #profiler: Profiler | undefined;
  readonly #timer: ProgramTimer | undefined;
  /** Filled before each command that needs it; commands copy what they point to. */
  readonly #scratch: ArrayBuffer = new ArrayBuffer(128);
  #bound: Pipeline | undefined;
  #transfers = false;
  #dispatchCount = 0;
  #barrierCount = 0;
  #sealed = false;

  /**
   * With a profiler, every dispatch stands alone between barriers and is timed; a timer takes the
   * whole program.
   */
  constructor(
    device: Device,
    pipelines: Pipelines,
    label: string,
    clocks: { profiler?: Profiler; timer?: ProgramTimer } = {},
  ) {
    const { vk, arena, handle, queueFamilyIndex } = device;
    using _ = arena.frame();
    this.#device = device;
    this.#pipelines = pipelines;
    this.#profiler = clocks.profiler;
    this.#timer = clocks.timer;
    this.label = label;
    const pool = arena.out();
    const poolInfo = arena.put(VkCommandPoolCreateInfo, {
      flags: CommandPoolCreateFlag.RESET_COMMAND_BUFFER,
      queueFamilyIndex,
    });
    check("vkCreateCommandPool", vk.vkCreateCommandPool(handle, poolInfo, null, pool.address));
    this.#pool = pool.u64();
    const commands = arena.out();
    const info = arena.put(VkCommandBufferAllocateInfo, {
      commandPool: this.#pool,
      commandBufferCount: 1,
    });
    check("vkAllocateCommandBuffers", vk.vkAllocateCommandBuffers(handle, info, commands.address));
    this.commands = commands.pointer();
    this.#begin();
  }

  get dispatchCount(): number {
    return this.#dispatchCount;
  }

  get barrierCount(): number {
    return this.#barrierCount;
  }

  dispatch(dispatch: Dispatch): void {
    const { vk } = this.#device;
    const {
      pipeline,
      pushConstants,
      groups: [x, y = 1, z = 1],
    } = dispatch;
    const {
      workgroupCount: [maxX = 0, maxY = 0, maxZ = 0],
    } = this.#device.capabilities.limits;
    invariant(
      x > 0 && x <= maxX && y > 0 && y <= maxY && z > 0 && z <= maxZ,
      `${dispatch.label}: ${x} × ${y} × ${z} workgroups`,
    );
    this.#order(dispatch);
    if (this.#bound !== pipeline) {
      vk.vkCmdBindPipeline(this.commands, PipelineBindPoint.COMPUTE, pipeline.handle);
      this.#bound = pipeline;
    }
    if (pushConstants.length > 0) {
      const staged = new Uint8Array(this.#scratch, 0, pushConstants.length);
      staged.set(pushConstants);
      const { layout } = this.#pipelines;
      vk.vkCmdPushConstants(this.commands, layout, ShaderStage.COMPUTE, 0, staged.length, staged);
    }
    vk.vkCmdDispatch(this.commands, x, y, z);
    this.#dispatchCount++;
    this.#profiler?.mark(this.commands, dispatch.label, pipeline.label);
  }

  copy(source: BufferSlice, target: BufferSlice): void {
    const { vk, arena } = this.#device;
    invariant(
      source.byteSize === target.byteSize,
      `copy of ${source.byteSize} to ${target.byteSize} bytes`,
    );
    this.#order({ reads: [source], writes: [target] }, true);
    using _ = arena.frame();
    const region = arena.put(VkBufferCopy, {
      srcOffset: source.offset,
      dstOffset: target.offset,
      size: source.byteSize,
    });
    vk.vkCmdCopyBuffer(this.commands, source.buffer.handle, target.buffer.handle, 1, region);
  }

  /** Fills with one 32-bit value; offset and size are multiples of four. */
  fill(target: BufferSlice, value = 0): void {
    this.#order({ reads: [], writes: [target] }, true);
    const { vk } = this.#device;
    const { buffer, offset, byteSize } = target;
    vk.vkCmdFillBuffer(this.commands, buffer.handle, BigInt(offset), BigInt(byteSize), value);
  }

  /** Ends the recording; the program can be submitted from now on. */
  seal(): this {
    invariant(!this.#sealed, `program ${this.label} is sealed already`);
    // What kernels wrote for the host, and what the next submission reads, must have arrived.
    this.#barrier(
      COMPUTE_SHADER | TRANSFER,
      COMPUTE_SHADER | TRANSFER | HOST,
      SHADER_WRITE | TRANSFER_WRITE,
      SHADER_READ | SHADER_WRITE | TRANSFER_READ | TRANSFER_WRITE | HOST_READ,
    );
    this.#timer?.end(this.commands);
    check("vkEndCommandBuffer", this.#device.vk.vkEndCommandBuffer(this.commands), this.label);
    this.#sealed = true;
    return this;
  }

  /** Starts over with an empty program. It must not be in flight. */
  reset(): this {
    this.#hazards.clear();
    this.#bound = undefined;
    this.#transfers = false;
    this.#dispatchCount = 0;
    this.#barrierCount = 0;
    this.#sealed = false;
    this.#begin();
    return this;
  }

  free(): void {
    const { vk, handle } = this.#device;
    vk.vkDestroyCommandPool(handle, this.#pool, null);
  }

  #begin(): void {
    const { vk, arena } = this.#device;
    using _ = arena.frame();
    const info = arena.put(VkCommandBufferBeginInfo, {
      flags: CommandBufferUsage.SIMULTANEOUS_USE,
    });
    check("vkBeginCommandBuffer", vk.vkBeginCommandBuffer(this.commands, info), this.label);
    this.#profiler?.begin(this.commands);
    this.#timer?.begin(this.commands);
  }

  /** Puts a barrier before a command if it touches what earlier ones wrote or still read. */
  #order(accesses: Accesses, transfer = false): void {
    invariant(!this.#sealed, `program ${this.label} is sealed`);
    if (this.#profiler !== undefined || this.#hazards.conflicts(accesses)) {
      const transfers = this.#transfers || transfer;
      const stages = COMPUTE_SHADER | (transfers ? TRANSFER : 0);
      const writes = SHADER_WRITE | (transfers ? TRANSFER_WRITE : 0);
      const reads = SHADER_READ | (transfers ? TRANSFER_READ : 0);
      this.#barrier(stages, stages, writes, reads | writes);
      this.#barrierCount++;
      this.#hazards.clear();
      this.#transfers = false;
    }
    this.#transfers ||= transfer;
    this.#hazards.add(accesses);
  }

  #barrier(fromStages: number, toStages: number, fromAccess: number, toAccess: number): void {
    const { vk, arena } = this.#device;
    using _ = arena.frame();
    const barrier = arena.put(VkMemoryBarrier, {
      srcAccessMask: fromAccess,
      dstAccessMask: toAccess,
    });
    vk.vkCmdPipelineBarrier(this.commands, fromStages, toStages, 0, 1, barrier, 0, null, 0, null);
  }
}
