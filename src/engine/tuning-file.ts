/**
 * Layouts that were measured, kept between runs beside the compiled pipelines: one file for each
 * device and driver. One that is damaged or not ours is ignored with a warning and written anew,
 * one of another build of zinc without; one that cannot be written costs a warning.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { modulesHash } from "../kernels/module.ts";
import type { Capabilities } from "../vulkan/capabilities.ts";

const schema = v.object({
  /** For people. */
  device: v.string(),
  /** What the measurements hold for. */
  identity: v.string(),
  /** Of the build that measured. */
  kernels: v.string(),
  tunings: v.record(v.string(), v.record(v.string(), v.number())),
});

type Content = v.InferOutput<typeof schema>;
type Fault = "damaged" | "of another device or driver";

export class TuningFile {
  readonly path: string;
  readonly #folder: string;
  readonly #device: string;
  readonly #identity: string;
  readonly #kernels: string;
  readonly #warn: (message: string) => void;

  constructor(
    folder: string,
    capabilities: Pick<Capabilities, "name" | "deviceUuid" | "driver">,
    warn: (message: string) => void,
    kernels = modulesHash(),
  ) {
    const { name, deviceUuid, driver } = capabilities;
    this.#folder = folder;
    this.#device = name;
    this.#identity = `${deviceUuid} ${driver.id} ${driver.version} ${driver.info}`;
    this.#kernels = kernels;
    this.#warn = warn;
    this.path = join(folder, `tunings-${Bun.hash(this.#identity).toString(16)}.json`);
  }

  /** What was measured for this device, driver and build: layouts by shape of work. */
  read(): Map<string, object> {
    const content = this.#content();
    if (typeof content === "string") {
      this.#warn(`${this.path} is ${content}; kernels are measured anew`);
    }
    return this.#tuningsIn(content);
  }

  /** Writes these beside what is there. False, with a warning, if it cannot be done. */
  add(tunings: Iterable<readonly [key: string, tuning: object]>): boolean {
    // Another process may have measured in the meantime.
    const all = new Map([...this.#tuningsIn(this.#content()), ...tunings]);
    const content = {
      device: this.#device,
      identity: this.#identity,
      kernels: this.#kernels,
      tunings: Object.fromEntries(all),
    };
    const temporary = `${this.path}.${process.pid}`;
    try {
      mkdirSync(this.#folder, { recursive: true });
      writeFileSync(temporary, `${JSON.stringify(content, null, 2)}\n`);
      renameSync(temporary, this.path);
      return true;
    } catch (error) {
      // Removing what was never written can fail in its own way.
      if (existsSync(temporary)) rmSync(temporary, { force: true });
      const reason = error instanceof Error ? error.message : String(error);
      this.#warn(`measured layouts of kernels could not be kept in ${this.path} (${reason})`);
      return false;
    }
  }

  /** What the file holds, or what is wrong with it; undefined without a file. */
  #content(): Content | Fault | undefined {
    let text: string;
    try {
      text = readFileSync(this.path, "utf8");
    } catch {
      return undefined;
    }
    try {
      const content = v.parse(schema, JSON.parse(text));
      return content.identity === this.#identity ? content : "of another device or driver";
    } catch {
      return "damaged";
    }
  }

  /** Other kernels would have to be measured themselves. */
  #tuningsIn(content: Content | Fault | undefined): Map<string, object> {
    if (typeof content !== "object" || content.kernels !== this.#kernels) return new Map();
    return new Map(Object.entries(content.tunings));
  }
}
