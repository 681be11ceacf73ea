/** A VkBuffer with its own memory and device address, and parts of it. */
import { toArrayBuffer } from "bun:ffi";
import { invariant, UserError } from "../errors.ts";
import { formatBytes } from "../math.ts";
import type { Capabilities } from "./capabilities.ts";
import { BufferUsage, MemoryAllocateFlag, MemoryProperty } from "./constants.ts";
import type { Device } from "./device.ts";
import { check } from "./result.ts";
import {
  VkBufferCreateInfo,
  VkBufferDeviceAddressInfo,
  VkMemoryAllocateFlagsInfo,
  VkMemoryAllocateInfo,
  VkMemoryRequirements,
} from "./structs.ts";

/**
 * What memory is for: `device` is the GPU's own and out of the host's sight where that exists;
 * `upload` is written by the host and read once; `step` is small, written by the host and read by
 * kernels; `readback` is written by kernels and read by the host.
 */
export type MemoryUse = "device" | "upload" | "step" | "readback";

const { DEVICE_LOCAL, HOST_VISIBLE, HOST_COHERENT, HOST_CACHED } = MemoryProperty;
const mappable = HOST_VISIBLE | HOST_COHERENT;

/**
 * Wanted and unwanted properties, best first. The last of each is guaranteed by the specification.
 */
const preferences: Readonly<Record<MemoryUse, readonly { want: number; avoid: number }[]>> = {
  // Host-visible device memory may lie in a small or slow window: never for weights if it can be
  // helped.
  device: [
    { want: DEVICE_LOCAL, avoid: HOST_VISIBLE },
    { want: DEVICE_LOCAL, avoid: 0 },
    { want: 0, avoid: 0 },
  ],
  upload: [
    { want: mappable, avoid: DEVICE_LOCAL },
    { want: mappable, avoid: 0 },
  ],
  step: [
    { want: mappable | DEVICE_LOCAL, avoid: 0 },
    { want: mappable, avoid: 0 },
  ],
  readback: [
    { want: mappable | HOST_CACHED, avoid: 0 },
    { want: mappable, avoid: 0 },
  ],
};

/** The memory type for a use among those allowed by `typeBits`. */
export function chooseMemoryType(device: Capabilities, use: MemoryUse, typeBits = ~0): number {
  for (const { want, avoid } of preferences[use]) {
    const index = device.memoryTypes.findIndex(
      ({ properties }, i) =>
        ((typeBits >>> i) & 1) === 1 && (properties & want) === want && (properties & avoid) === 0,
    );
    if (index >= 0) return index;
  }
  invariant(false, `no memory type for ${use}`);
}

/** A range of a buffer: what kernels take. */
export interface BufferSlice {
  readonly buffer: DeviceBuffer;
  readonly offset: number;
  readonly byteSize: number;
}

export class DeviceBuffer {
  readonly device: Device;
  readonly handle: bigint;
  readonly byteSize: number;
  /** Of the first byte, as kernels see it. */
  readonly address: bigint;
  /** The memory itself where the host can see it. */
  readonly bytes: Uint8Array | undefined;
  readonly #memory: bigint;

  /** Throws a "memory" error if it does not fit; `label` names it there. */
  constructor(device: Device, byteSize: number, use: MemoryUse, label: string) {
    const { vk, arena } = device;
    using _ = arena.frame();
    this.device = device;
    this.byteSize = byteSize;
    const { TRANSFER_SRC, TRANSFER_DST, STORAGE_BUFFER, SHADER_DEVICE_ADDRESS, INDIRECT_BUFFER } =
      BufferUsage;
    const info = arena.put(VkBufferCreateInfo, {
      size: byteSize,
      usage: TRANSFER_SRC | TRANSFER_DST | STORAGE_BUFFER | SHADER_DEVICE_ADDRESS | INDIRECT_BUFFER,
    });
    const about = `${formatBytes(byteSize)} for ${label} on ${device.capabilities.name}`;
    const handle = arena.out();
    check("vkCreateBuffer", vk.vkCreateBuffer(device.handle, info, null, handle.address), about);
    this.handle = handle.u64();
    const requirements = arena.place(VkMemoryRequirements);
    vk.vkGetBufferMemoryRequirements(device.handle, this.handle, requirements.address);
    const { size, memoryTypeBits } = requirements.read();
    const allocation = arena.put(VkMemoryAllocateInfo, {
      pNext: arena.put(VkMemoryAllocateFlagsInfo, { flags: MemoryAllocateFlag.DEVICE_ADDRESS }),
      allocationSize: size,
      memoryTypeIndex: chooseMemoryType(device.capabilities, use, memoryTypeBits),
    });
    const memory = arena.out();
    const result = vk.vkAllocateMemory(device.handle, allocation, null, memory.address);
    if (result !== 0) vk.vkDestroyBuffer(device.handle, this.handle, null);
    check("vkAllocateMemory", result, about);
    this.#memory = memory.u64();
    check(
      "vkBindBufferMemory",
      vk.vkBindBufferMemory(device.handle, this.handle, this.#memory, 0n),
    );
    const addressInfo = arena.put(VkBufferDeviceAddressInfo, { buffer: this.handle });
    this.address = vk.vkGetBufferDeviceAddress(device.handle, addressInfo);
    this.bytes = use === "device" ? undefined : this.#map(size);
  }

  slice(offset = 0, byteSize = this.byteSize - offset): BufferSlice {
    invariant(
      offset + byteSize <= this.byteSize,
      `slice ${offset} + ${byteSize} of ${this.byteSize}`,
    );
    return { buffer: this, offset, byteSize };
  }

  free(): void {
    const { vk, handle } = this.device;
    vk.vkDestroyBuffer(handle, this.handle, null);
    vk.vkFreeMemory(handle, this.#memory, null);
  }

  #map(size: number): Uint8Array {
    const { vk, arena, handle } = this.device;
    const data = arena.out();
    // A mapping ends with its memory, so it is never undone by hand.
    check("vkMapMemory", vk.vkMapMemory(handle, this.#memory, 0n, BigInt(size), 0, data.address));
    return new Uint8Array(toArrayBuffer(data.pointer(), 0, this.byteSize));
  }
}

/** The device address of a slice's first byte. */
export function addressOf(slice: BufferSlice): bigint {
  return slice.buffer.address + BigInt(slice.offset);
}

/** The bytes of a slice that the host can see. */
export function hostBytes(slice: BufferSlice): Uint8Array {
  const { buffer, offset, byteSize } = slice;
  invariant(buffer.bytes !== undefined, "the host cannot see this memory");
  return buffer.bytes.subarray(offset, offset + byteSize);
}

/** A part of a slice. */
export function subslice(slice: BufferSlice, offset: number, byteSize: number): BufferSlice {
  if (offset < 0 || offset + byteSize > slice.byteSize) {
    invariant(false, `subslice ${offset} + ${byteSize} of ${slice.byteSize}`);
  }
  return { buffer: slice.buffer, offset: slice.offset + offset, byteSize };
}

/**
 * Throws a "memory" error with the numbers unless `byteSize` can be one allocation of the device.
 */
export function assertAllocatable(device: Capabilities, byteSize: number, label: string): void {
  if (byteSize <= device.limits.allocationBytes) return;
  throw new UserError(
    "memory",
    `${label} needs ${formatBytes(byteSize)} in one piece and ${device.name} allows ` +
      formatBytes(device.limits.allocationBytes),
    "take a smaller quantization",
  );
}
