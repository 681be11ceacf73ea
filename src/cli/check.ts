/** `zinc --check`: is everything as it should be, from the loader to the model's answer? */
import { nextTurn } from "../engine/turn.ts";
import { UserError } from "../errors.ts";
import { parseKvTypes, type KvTypes } from "../kernels/kv-type.ts";
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
import { checkModel } from "./check/model.ts";
import { failure, ok, warning, type CheckResult, type Status } from "./check/result.ts";
import { checkSelfTest } from "./check/self-test.ts";
import { checkDrivers, checkHost, checkLayers, checkRenderNodes } from "./check/system.ts";
import { command } from "./command.ts";
import { describeDevice } from "./devices.ts";
import { toggle } from "./flag.ts";
import { contextFlags, modelEnvironment, modelFlags, outputFlags, placeFlags } from "./flags.ts";
import { paint, setQuiet, writeOut } from "./output.ts";

export const checkCommand = command({
  name: "check",
  summary: "Look at loader, drivers, device and model, and test them",
  description: `
    Goes from the Vulkan loader to an answer of the small model inside zinc, and says of each
    step whether it is as it should be and, if not, what to do. Also spelled zinc --check.

    With a model it also says whether zinc runs it, whether it fits, and how long texts may be.
  `,
  examples: {
    "zinc --check": "is everything as it should be?",
    "zinc --check -m llama-3.1-8b": "does this model fit, and with which context?",
    "zinc --check -m model.gguf --devices 0,1": "which of its layers would go where?",
    "zinc --check -m llama-3.1-8b --kv-type tq4": "and if the cache takes a quarter?",
    "zinc --check --json --strict": "for scripts: exit code 1 also on a warning",
  },
  environment: modelEnvironment,
  exitCodes: {
    0: "all is well, perhaps with warnings",
    1: "a check failed, or warned with --strict",
  },
  flags: {
    ...modelFlags,
    kvType: contextFlags.kvType,
    ...placeFlags,
    strict: toggle("a warning is a failure, too"),
    ...outputFlags,
  },
  async run({ model, kvType, device, devices, deviceMemory, strict, json, quiet }) {
    setQuiet(quiet === true);
    const check = new Check(json === true ? async () => {} : printLine);
    const kvTypes = kvType && parseKvTypes(kvType);
    const found = await check.run(model, { device, devices, deviceMemory, kvTypes });
    const bad: Status[] = strict === true ? ["fail", "warn"] : ["fail"];
    const report = { ok: found.checks.every(({ status }) => !bad.includes(status)), ...found };
    if (json === true) await writeOut(`${JSON.stringify(report)}\n`);
    else await writeOut(`${summary(report.checks, report.ok)}\n`);
    return report.ok ? 0 : 1;
  },
});

/** Where the model is to run. */
interface Places {
  readonly device: string | undefined;
  readonly devices: readonly string[] | undefined;
}

interface Wishes extends Places {
  readonly deviceMemory: readonly number[] | undefined;
  readonly kvTypes: KvTypes | undefined;
}

interface DescribedDevice extends ReturnType<typeof describeDevice> {
  readonly readGBs?: number;
}

/** One that is named twice is looked at once. */
function distinct(gpus: readonly Gpu[]): Gpu[] {
  return [...new Map(gpus.map((gpu) => [gpu.device.physical.index, gpu])).values()];
}

class Check {
  readonly #onResult: (result: CheckResult) => Promise<void>;
  readonly #results: CheckResult[] = [];
  #shown = 0;

  constructor(onResult: (result: CheckResult) => Promise<void>) {
    this.#onResult = onResult;
  }

  async run(model: string | undefined, wishes: Wishes) {
    await this.#add(checkHost(), checkDrivers(), checkLayers(), checkRenderNodes());
    const gpus = await this.#open(wishes);
    const described: DescribedDevice[] = [];
    for (const gpu of distinct(gpus)) described.push(await this.#checkDevice(gpu));
    const { deviceMemory: memoryBytes, kvTypes } = wishes;
    const { results, facts } = await checkModel(model, gpus, { memoryBytes, kvTypes });
    await this.#add(...results);
    for (const gpu of gpus) gpu.close();
    await this.#add();
    const several = wishes.devices === undefined ? {} : { devices: described };
    return { checks: this.#results, device: described[0] ?? null, ...several, model: facts };
  }

  async #open({ device, devices }: Places): Promise<Gpu[]> {
    const name = "vulkan";
    // That the device is the processor is said once, by its own check.
    const warn = (message: string) => {
      if (!message.startsWith("running on the processor")) {
        this.#results.push(warning("cache", message));
      }
    };
    try {
      const gpus = Gpu.openAll({ device, devices, cacheFolder: cacheFolder(), warn });
      const [first] = gpus;
      const { loader, version } = first?.instance ?? {};
      await this.#add(ok(name, `${loader?.name} ${version?.join(".")}`));
      return gpus;
    } catch (error) {
      if (!(error instanceof UserError) || error.kind === "usage") throw error;
      await this.#add(failure(name, error.text));
      return [];
    }
  }

  async #checkDevice(gpu: Gpu): Promise<DescribedDevice> {
    const { capabilities, physical } = gpu.device;
    const described = describeDevice(capabilities);
    try {
      await this.#add(checkKind(capabilities), checkMatrixUnits(capabilities));
      await this.#add(checkResizableBar(capabilities), checkMemory(gpu));
      const { result, readGBs } = checkBandwidth(gpu);
      await this.#add(result);
      await this.#add(await checkKernels(gpu));
      await this.#add(await checkSelfTest(`${physical.index}`));
      return { ...described, readGBs };
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      await this.#add(failure("device", error.text));
      return described;
    }
  }

  /** Shows these and what was found on the way, and lets signals in. */
  async #add(...results: readonly CheckResult[]): Promise<void> {
    this.#results.push(...results);
    for (const result of this.#results.slice(this.#shown)) await this.#onResult(result);
    this.#shown = this.#results.length;
    await nextTurn();
  }
}

const marks = { ok: "green", warn: "yellow", fail: "red", skip: "dim" } as const;

function printLine({ name, status, detail }: CheckResult): Promise<void> {
  const mark = paint(status.toUpperCase().padEnd(4), marks[status], "stdout");
  return writeOut(`${mark}  ${name.padEnd(16)} ${detail}\n`);
}

function summary(checks: readonly CheckResult[], isFine: boolean): string {
  const count = (status: Status) => checks.filter((check) => check.status === status).length;
  const [bad, odd] = [count("fail"), count("warn")];
  const warnings = `${odd} warning${odd === 1 ? "" : "s"}`;
  if (bad > 0) return `${bad} failed, ${warnings}: zinc will not work as it is`;
  if (!isFine) return `ready, but for --strict ${warnings} too many`;
  return odd > 0 ? `ready, with ${warnings}` : "ready";
}
