/**
 * An opened device with what everything on it shares: pipelines and the timeline. The owner that
 * closes it all.
 */
import { UserError } from "../errors.ts";
import { Device } from "./device.ts";
import { Instance } from "./instance.ts";
import { Pipelines } from "./pipeline.ts";
import { Program } from "./program.ts";
import { chooseDevice } from "./selection.ts";
import { Timeline } from "./timeline.ts";

export interface GpuOptions {
  /** Index or part of a name; the best device by default. */
  readonly device?: string | undefined;
  /** What the user calls this wish. */
  readonly called?: string;
  /** Where compiled pipelines are kept between runs. */
  readonly cacheFolder?: string | undefined;
  readonly warn?: ((message: string) => void) | undefined;
  /** Lets pipelines tell their registers, spills and occupancy. */
  readonly statistics?: boolean;
}

export interface Devices {
  /** Several instead of one. */
  readonly devices?: readonly string[] | undefined;
}

export class Gpu {
  readonly instance: Instance;
  readonly device: Device;
  readonly pipelines: Pipelines;
  readonly timeline: Timeline;

  private constructor(instance: Instance, device: Device, options: GpuOptions) {
    this.instance = instance;
    this.device = device;
    this.pipelines = new Pipelines(device, options.cacheFolder, options.warn);
    this.timeline = new Timeline(device);
  }

  static open(options: GpuOptions = {}): Gpu {
    const warn = options.warn ?? (() => {});
    const instance = Instance.create();
    const physical = chooseDevice(instance.devices, options.device, options.called);
    const { name, kind } = physical.capabilities;
    if (kind === "cpu")
      warn(`running on the processor (${name}): no GPU driver was found or asked for`);
    const device = Device.open(
      instance,
      physical,
      options.statistics === true ? { statistics: true } : {},
    );
    return new Gpu(instance, device, options);
  }

  /**
   * The devices that are named, in their order, or the one of `device`. One that is named twice is
   * opened twice.
   */
  static openAll({ devices, ...options }: GpuOptions & Devices): Gpu[] {
    if (devices === undefined) return [Gpu.open(options)];
    if (options.device !== undefined) {
      throw new UserError("usage", "--device and --devices exclude each other", "give one of them");
    }
    if (devices.length === 0) throw new UserError("usage", "--devices names no device");
    const warnings = new Set<string>();
    const warn = (message: string) => {
      if (!warnings.has(message)) options.warn?.(message);
      warnings.add(message);
    };
    using opened = new DisposableStack();
    const gpus = devices.map((device) => {
      const called = `${device} of --devices ${devices.join()}`;
      const gpu = Gpu.open({ ...options, warn, device, called });
      opened.defer(() => gpu.close());
      return gpu;
    });
    opened.move();
    return gpus;
  }

  /** Records, runs and waits: for work that is done once. */
  run(label: string, record: (program: Program) => void): void {
    const program = new Program(this.device, this.pipelines, label);
    try {
      record(program);
      this.timeline.wait(this.timeline.submit(program.seal().commands, label));
    } finally {
      program.free();
    }
  }

  close(): void {
    this.device.waitIdle();
    this.pipelines.save();
    this.pipelines.close();
    this.timeline.close();
    this.device.close();
    this.instance.close();
  }
}
