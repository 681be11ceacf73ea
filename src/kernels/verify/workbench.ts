/** A place to run one kernel on given numbers and to look at what comes out. */
import { invariant } from "../../errors.ts";
import { blockFormats, type DType } from "../../tensor/dtype.ts";
import { planeFields, planeLayout } from "../../tensor/planes.ts";
import { planesIn, type Matrix, type Vector } from "../../tensor/tensor.ts";
import { DeviceBuffer, hostBytes, type BufferSlice } from "../../vulkan/buffer.ts";
import type { Gpu } from "../../vulkan/gpu.ts";
import type { KernelContext } from "../kernel.ts";

/** Outputs start as this, so that what a kernel leaves out is seen: a NaN. */
const poison = 0xff;

export class Workbench {
  readonly gpu: Gpu;
  readonly #buffers: DeviceBuffer[] = [];

  constructor(gpu: Gpu) {
    this.gpu = gpu;
  }

  /** Memory that both sides see, with these bytes. */
  upload(source: ArrayBufferView): BufferSlice {
    const bytes = new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    const slice = this.#allocate(Math.max(bytes.length, 16));
    hostBytes(slice).set(bytes);
    return slice;
  }

  /** Poisoned room for `count` floats. */
  floats(count: number): BufferSlice {
    const slice = this.#allocate(Math.max(count * 4, 16));
    hostBytes(slice).fill(poison);
    return slice;
  }

  /** Blocks as in a file, laid out in planes by the host. */
  matrix(name: string, dtype: DType, rows: number, columns: number, blocks: Uint8Array): Matrix {
    const { byteSize } = planeLayout(dtype, rows * columns);
    const slice = this.#allocate(byteSize);
    const planes = planesIn(slice, dtype, rows * columns);
    const { blockBytes } = blockFormats[dtype];
    planeFields(dtype).forEach((field, i) => {
      const plane = planes[i];
      invariant(plane !== undefined, "a plane is missing");
      const target = hostBytes(plane);
      for (let block = 0; block * blockBytes < blocks.length; block++) {
        const from = block * blockBytes + field.offset;
        target.set(blocks.subarray(from, from + field.byteSize), block * field.byteSize);
      }
    });
    return { name, dtype, rows, columns, planes };
  }

  vector(name: string, values: Float32Array): Vector {
    return { name, length: values.length, data: this.upload(values) };
  }

  run(record: (context: KernelContext) => void): void {
    const { pipelines, device } = this.gpu;
    this.gpu.run("workbench", (program) =>
      record({ program, pipelines, capabilities: device.capabilities }),
    );
  }

  read(slice: BufferSlice, count = slice.byteSize / 4): Float32Array {
    const bytes = hostBytes(slice);
    return new Float32Array(bytes.slice(0, count * 4).buffer);
  }

  free(): void {
    for (const buffer of this.#buffers.splice(0)) buffer.free();
  }

  #allocate(byteSize: number): BufferSlice {
    const buffer = new DeviceBuffer(this.gpu.device, byteSize, "readback", "a kernel's test");
    this.#buffers.push(buffer);
    return buffer.slice();
  }
}
