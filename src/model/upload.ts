/**
 * Weights from the file into device memory. Several pieces are on their way at once: while one is
 * read from the disk into mapped staging memory, others are copied or repacked by the GPU. Host
 * memory stays at the size of the ring.
 */
import { availableParallelism } from "node:os";
import type { GgufFile } from "../gguf/file.ts";
import { repack, repackBlockStep } from "../kernels/repack.ts";
import { dequantize } from "../tensor/dequantize.ts";
import { blockFormats } from "../tensor/dtype.ts";
import { planesIn } from "../tensor/tensor.ts";
import { DeviceBuffer, hostBytes, subslice, type BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { MemoryGroup } from "../vulkan/memory.ts";
import { Program } from "../vulkan/program.ts";
import { weightPieces, type DeclaredWeight } from "./weights.ts";

/** Large enough for full disk and bus speed, small enough to overlap well. */
const stagingBytes = 16 << 20;
const stagingCountMax = 8;

export interface UploadProgress {
  readonly doneBytes: number;
  readonly totalBytes: number;
}

/** A run of whole blocks of one weight that fits a staging buffer. */
interface Part {
  readonly weight: DeclaredWeight;
  readonly target: BufferSlice;
  readonly firstBlock: number;
  readonly blockCount: number;
}

/** Allocates device memory for weights of a file, fills it, and hands each its place. */
export async function uploadWeights(
  gpu: Gpu,
  file: GgufFile,
  declared: readonly DeclaredWeight[],
  onProgress: (progress: UploadProgress) => void = () => {},
): Promise<MemoryGroup> {
  const group = new MemoryGroup(gpu.device, "device", weightPieces(declared), "the weights");
  try {
    const parts = declared.flatMap((weight, i) => {
      const target = group.slices[i];
      return target === undefined ? [] : partsOf(weight, target);
    });
    const totalBytes = fileBytesOf(declared);
    const queue = parts.values();
    let doneBytes = 0;
    const slotCount = Math.max(1, Math.min(stagingCountMax, availableParallelism(), parts.length));
    const runSlot = async () => {
      const slot = new Slot(gpu, file);
      try {
        for (const part of queue) {
          // In one expression the sum would be read before the wait, and others' parts be lost.
          const loadedBytes = await slot.load(part);
          doneBytes += loadedBytes;
          onProgress({ doneBytes, totalBytes });
        }
      } finally {
        slot.free();
      }
    };
    const outcomes = await Promise.allSettled(Array.from({ length: slotCount }, runSlot));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    declared.forEach((weight, i) => {
      const slice = group.slices[i];
      if (slice !== undefined) weight.place(slice);
    });
    return group;
  } catch (error) {
    group.free();
    throw error;
  }
}

/** What there is to read. */
export function fileBytesOf(declared: readonly DeclaredWeight[]): number {
  return declared.reduce((sum, { tensor }) => sum + (tensor.sizeBytes ?? 0), 0);
}

function partsOf(weight: DeclaredWeight, target: BufferSlice): Part[] {
  const { blockBytes, blockValues } = blockFormats[weight.dtype];
  const total = weight.tensor.valueCount / blockValues;
  const step = Math.floor(stagingBytes / blockBytes / repackBlockStep) * repackBlockStep;
  return Array.from({ length: Math.ceil(total / step) }, (_unused, i) => ({
    weight,
    target,
    firstBlock: i * step,
    blockCount: Math.min(step, total - i * step),
  }));
}

/** One staging buffer with the program that empties it. */
class Slot {
  readonly #gpu: Gpu;
  readonly #file: GgufFile;
  readonly #buffer: DeviceBuffer;
  readonly #program: Program;
  #submission = 0;
  #fresh = true;

  constructor(gpu: Gpu, file: GgufFile) {
    this.#gpu = gpu;
    this.#file = file;
    // Dequantized vectors take up to twice the bytes of the file; they are small.
    this.#buffer = new DeviceBuffer(gpu.device, stagingBytes, "upload", "staging");
    this.#program = new Program(gpu.device, gpu.pipelines, "upload");
  }

  /** Reads a part and hands it to the GPU; returns its size in the file. */
  async load({ weight, target, firstBlock, blockCount }: Part): Promise<number> {
    const { tensor, dtype, kind } = weight;
    const { blockBytes } = blockFormats[dtype];
    const byteSize = blockCount * blockBytes;
    this.#gpu.timeline.wait(this.#submission);
    const source = subslice(this.#buffer.slice(), 0, byteSize);
    const offset = tensor.offsetBytes + firstBlock * blockBytes;
    await this.#file.readInto(hostBytes(source), tensor.fileIndex, offset);
    const program = this.#fresh ? this.#program : this.#program.reset();
    this.#fresh = false;
    if (kind === "matrix") {
      const {
        pipelines,
        device: { capabilities },
      } = this.#gpu;
      const planes = planesIn(target, dtype, tensor.valueCount);
      repack({ program, pipelines, capabilities }, { dtype, source, planes, firstBlock });
    } else {
      this.#stageVector(weight, byteSize, target);
    }
    this.#submission = this.#gpu.timeline.submit(
      program.seal().commands,
      `upload of ${tensor.name}`,
    );
    return byteSize;
  }

  free(): void {
    this.#gpu.timeline.wait(this.#submission);
    this.#program.free();
    this.#buffer.free();
  }

  /** Vectors are floats on the device whatever they are in the file. */
  #stageVector({ dtype }: DeclaredWeight, byteSize: number, target: BufferSlice): void {
    const values = dequantize(dtype, hostBytes(this.#buffer.slice(0, byteSize)).slice());
    const staged = this.#buffer.slice(0, values.byteLength);
    hostBytes(staged).set(new Uint8Array(values.buffer));
    this.#program.copy(staged, subslice(target, 0, values.byteLength));
  }
}
