/** Whether models fit the memory of a device, as far as that can be told before they are loaded. */
import { planMemory } from "../../engine/plan.ts";
import { UserError } from "../../errors.ts";
import { openModelFile } from "../../index.ts";
import { describeModel } from "../../model/architectures.ts";
import { cacheFolder } from "../../paths.ts";
import { Gpu } from "../../vulkan/gpu.ts";
import { freeDeviceBytes } from "../../vulkan/memory.ts";

/** "unsupported" if zinc cannot run the model at all. */
export type Verdict = "yes" | "no" | "unsupported";

/** A model needs more than its file: room to work in, and for a context of some length. */
const extraShare = 0.1;
const extraBytesMin = 512 << 20;

export class Fit implements Disposable {
  readonly #gpu: Gpu;

  private constructor(gpu: Gpu) {
    this.#gpu = gpu;
  }

  /** Throws a "device" error where there is no usable device. */
  static open(device: string | undefined): Fit {
    return new Fit(Gpu.open({ device, cacheFolder: cacheFolder(), warn: () => {} }));
  }

  get deviceName(): string {
    return this.#gpu.device.capabilities.name;
  }

  /** What is free now. */
  get freeBytes(): number {
    return freeDeviceBytes(this.#gpu.device, 0);
  }

  /** A guess, for a file that is not here yet. */
  ofSize(sizeBytes: number): Verdict {
    const neededBytes = sizeBytes + Math.max(sizeBytes * extraShare, extraBytesMin);
    return neededBytes <= this.freeBytes ? "yes" : "no";
  }

  async ofFile(path: string): Promise<Verdict> {
    try {
      using file = await openModelFile(path);
      planMemory(this.#gpu.device, describeModel(file));
      return "yes";
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      return error.kind === "memory" ? "no" : "unsupported";
    }
  }

  [Symbol.dispose](): void {
    this.#gpu.close();
  }
}
