/** What layouts are raced on: inputs that all of them share, and a place for their results. */
import { invariant } from "../errors.ts";
import { stepBytes, writeStep } from "../kernels/step.ts";
import { contestChoices, type Contest, type ContestMemory } from "../kernels/tunings.ts";
import { floatBits } from "../math.ts";
import { hostBytes, subslice, type BufferSlice, type MemoryUse } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { MemoryGroup } from "../vulkan/memory.ts";
import { seededRandom } from "./sampler.ts";

/** The bits of a NaN. */
const poison = 0xffff_ffff;

export class RaceMemory implements Disposable {
  readonly slices: ContestMemory;
  readonly #gpu: Gpu;
  readonly #readback: BufferSlice;
  readonly #groups: DisposableStack;

  /** Large enough for each of the contests. Throws a "memory" error, and holds nothing then. */
  constructor(gpu: Gpu, contests: readonly Contest[]) {
    using groups = new DisposableStack();
    const allocate = (use: MemoryUse, byteSize: number) => {
      const pieces = [{ label: "a race", byteSize }];
      const group = new MemoryGroup(gpu.device, use, pieces, "a race of layouts");
      groups.defer(() => group.free());
      const [slice] = group.slices;
      invariant(slice !== undefined, "no memory for a race");
      return slice;
    };
    /** Device memory with these bytes. */
    const place = (bytes: Uint8Array) => {
      const target = allocate("device", bytes.length);
      const staging = allocate("upload", bytes.length);
      hostBytes(staging).set(bytes);
      gpu.run("inputs of a race", (program) => program.copy(staging, target));
      return target;
    };
    const largest = (of: (contest: Contest) => number) => Math.max(4, ...contests.map(of));
    const outputBytes = largest((contest) => contest.outputBytes);
    const oneRow = stepOfOneRow();
    const step = allocate("step", oneRow.length);
    hostBytes(step).set(oneRow);
    this.slices = {
      inputs: place(randomFloats(largest((contest) => contest.inputBytes) / 4)),
      outputs: allocate("device", outputBytes),
      choices: place(firstChoices()),
      step,
    };
    this.#readback = allocate("readback", outputBytes);
    this.#gpu = gpu;
    this.#groups = groups.move();
  }

  /** Makes results no numbers, so that what a layout leaves out is seen. */
  poison(): void {
    this.#gpu.run("results of a race", (program) => program.fill(this.slices.outputs, poison));
  }

  /** What the host cannot see, as floats. */
  read(source: BufferSlice): Float32Array {
    const target = subslice(this.#readback, 0, source.byteSize);
    this.#gpu.run("results of a race", (program) => program.copy(source, target));
    return new Float32Array(hostBytes(target).slice().buffer);
  }

  [Symbol.dispose](): void {
    this.#groups.dispose();
  }
}

/** The step of a row that is an output. */
function stepOfOneRow(): Uint8Array {
  const shape = { rowCapacity: 1, sequenceCapacity: 1, tableStride: 1 };
  const words = new Uint32Array(stepBytes(shape) / 4);
  writeStep(words, shape, [{ token: 0, position: 0, sequence: 0 }], [0]);
  return new Uint8Array(words.buffer);
}

/** Between -1 and 1. */
function randomFloats(count: number): Uint8Array {
  const random = seededRandom(1);
  const values = Float32Array.from({ length: count }, () => 2 * random() - 1);
  return new Uint8Array(values.buffer);
}

/** The first experts, half of each. */
function firstChoices(): Uint8Array {
  const numbers = Array.from({ length: contestChoices }, (_unused, i) => i);
  const words = numbers.flatMap((expert) => [expert, floatBits(0.5)]);
  return new Uint8Array(Uint32Array.from(words).buffer);
}
