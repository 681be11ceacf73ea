/** `zinc --check`: is everything as it should be, from the loader to the model's answer? */
import { UserError } from "../errors.ts";
import { cacheFolder } from "../paths.ts";
import { Gpu } from "../vulkan/gpu.ts";
import {
  checkBandwidth,
  checkKernels,
  checkKind,
  checkMatrixUnits,
  checkMemory,
  checkResizableBar,
} from "./check/device.ts";
import { checkModel, type ModelFacts } from "./check/model.ts";
import { failure, ok, warning, type CheckResult, type Status } from "./check/result.ts";
import { checkSelfTest } from "./check/self-test.ts";
import { checkDrivers, checkHost, checkLayers, checkRenderNodes } from "./check/system.ts";
import { command } from "./command.ts";
import { describeDevice } from "./devices.ts";
import { toggle } from "./flag.ts";
import { deviceFlags, modelFlags, outputFlags } from "./flags.ts";
import { paint, setQuiet, writeOut } from "./output.ts";
import { Progress } from "./progress.ts";

export const checkCommand = command({
  name: "check",
  summary: "Look at loader, drivers, device and model, and test them",
  flags: {
    ...modelFlags,
    ...deviceFlags,
    strict: toggle("a warning is a failure, too"),
    ...outputFlags,
  },
  async run({ model, device, strict, json, quiet }) {
    setQuiet(quiet === true);
    const report = await new Check(json === true ? () => {} : printLine).run(model, device);
    if (json === true) await writeOut(`${JSON.stringify(report)}\n`);
    else await writeOut(`${summary(report.checks)}\n`);
    const bad: Status[] = strict === true ? ["fail", "warn"] : ["fail"];
    return report.checks.some(({ status }) => bad.includes(status)) ? 1 : 0;
  },
});

class Check {
  readonly #onResult: (result: CheckResult) => void;
  readonly #results: CheckResult[] = [];

  constructor(onResult: (result: CheckResult) => void) {
    this.#onResult = onResult;
  }

  async run(model: string | undefined, device: string | undefined) {
    this.#add(checkHost());
    this.#add(checkDrivers());
    this.#add(checkLayers());
    this.#add(checkRenderNodes());
    const gpu = this.#open(device);
    const described = gpu === undefined ? null : await this.#checkDevice(gpu, device);
    const { results, facts } = await checkModel(model, gpu);
    for (const result of results) this.#add(result);
    gpu?.close();
    return this.#report(described, facts);
  }

  #open(device: string | undefined): Gpu | undefined {
    const name = "vulkan";
    try {
      const gpu = Gpu.open({
        device,
        cacheFolder: cacheFolder(),
        warn: (message) => {
          // That the device is the processor is said once, by its own check.
          if (!message.startsWith("running on the processor")) this.#add(warning("cache", message));
        },
      });
      const { loader, version } = gpu.instance;
      this.#add(ok(name, `${loader.name} ${version.join(".")}`));
      return gpu;
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      this.#add(failure(name, error.text));
      return undefined;
    }
  }

  async #checkDevice(gpu: Gpu, device: string | undefined) {
    const { capabilities } = gpu.device;
    this.#add(checkKind(capabilities));
    this.#add(checkMatrixUnits(capabilities));
    this.#add(checkResizableBar(capabilities));
    this.#add(checkMemory(gpu));
    const { result, readGBs } = checkBandwidth(gpu);
    this.#add(result);
    const progress = new Progress("kernels");
    const kernels = checkKernels(gpu, progress);
    progress.clear();
    this.#add(kernels);
    this.#add(await checkSelfTest(device));
    return { ...describeDevice(capabilities), readGBs };
  }

  #add(result: CheckResult): void {
    this.#results.push(result);
    this.#onResult(result);
  }

  #report(device: object | null, model: ModelFacts | null) {
    const checks = this.#results;
    return { ok: checks.every(({ status }) => status !== "fail"), checks, device, model };
  }
}

const marks = { ok: "green", warn: "yellow", fail: "red", skip: "dim" } as const;

function printLine({ name, status, detail }: CheckResult): void {
  const mark = paint(status.toUpperCase().padEnd(4), marks[status], "stdout");
  process.stdout.write(`${mark}  ${name.padEnd(16)} ${detail}\n`);
}

function summary(checks: readonly CheckResult[]): string {
  const count = (status: Status) => checks.filter((check) => check.status === status).length;
  const [bad, odd] = [count("fail"), count("warn")];
  if (bad > 0) return `${bad} failed, ${odd} warnings: zinc will not work as it is`;
  return odd > 0 ? `ready, with ${odd} warning${odd === 1 ? "" : "s"}` : "ready";
}
