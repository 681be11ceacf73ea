/** Groups of buffers that live and die together, packed into few allocations. */
import { DeviceBuffer, assertAllocatable, type BufferSlice, type MemoryUse } from "./buffer.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Device } from "./device.ts";
import { pack, type Packing } from "./packing.ts";

/** Slices start on a cache line of every GPU, and on what vector loads and copies want. */
export const sliceAlignment = 256;

/** Larger allocations gain nothing, and some drivers fail near their own limit. */
const blockBytesMax = 1 << 30;

export interface Piece {
  readonly label: string;
  readonly byteSize: number;
}

/** How pieces would be allocated on a device: what `allocate` does, without doing it. */
export function planPacking(device: Capabilities, pieces: readonly Piece[]): Packing {
  for (const piece of pieces) assertAllocatable(device, piece.byteSize, piece.label);
  const largest = Math.max(0, ...pieces.map((piece) => piece.byteSize));
  const limit = Math.max(Math.min(blockBytesMax, device.limits.allocationBytes), largest);
  return pack(
    pieces.map((piece) => piece.byteSize),
    sliceAlignment,
    limit,
  );
}

export class MemoryGroup {
  readonly slices: readonly BufferSlice[];
  readonly byteSize: number;
  readonly #buffers: DeviceBuffer[] = [];

  /** One slice for each piece, in order. Throws a "memory" error, and holds nothing then. */
  constructor(device: Device, use: MemoryUse, pieces: readonly Piece[], label: string) {
    const packing = planPacking(device.capabilities, pieces);
    try {
      for (const byteSize of packing.blocks) {
        this.#buffers.push(new DeviceBuffer(device, byteSize, use, label));
      }
    } catch (error) {
      this.free();
      throw error;
    }
    this.byteSize = packing.blocks.reduce((sum, byteSize) => sum + byteSize, 0);
    this.slices = packing.placements.map(({ blockIndex, offset }, i) => {
      const buffer = this.#buffers[blockIndex];
      const piece = pieces[i];
      if (buffer === undefined || piece === undefined)
        throw new RangeError("packing and pieces differ");
      return buffer.slice(offset, piece.byteSize);
    });
  }

  free(): void {
    for (const buffer of this.#buffers.splice(0)) buffer.free();
  }
}

/** Bytes of device memory that can still be taken, leaving `marginBytes` to the desktop. */
export function freeDeviceBytes(device: Device, marginBytes: number): number {
  const local = device.budget().filter((heap) => heap.deviceLocal);
  const largest = Math.max(0, ...local.map((heap) => heap.freeBytes));
  return Math.max(0, largest - marginBytes);
}
