/**
 * Compiled pipelines kept between runs, one file for each device, driver and build of zinc. A file
 * that is damaged or of another driver is ignored; one that cannot be written costs a warning and
 * nothing else.
 */
import { ptr } from "bun:ffi";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Device } from "./device.ts";
import { check } from "./result.ts";
import { VkPipelineCacheCreateInfo } from "./structs.ts";

/** Drivers' caches of all our kernels stay far below this; more is not our file. */
const fileBytesMax = 256 << 20;

/**
 * VkPipelineCacheHeaderVersionOne: length, version, vendor, device, 16 bytes of UUID; then a
 * checksum of ours.
 */
const headerBytes = 32;
const checksumBytes = 8;

export class PipelineCache {
  readonly handle: bigint;
  readonly #device: Device;
  readonly #path: string | undefined;
  readonly #folder: string | undefined;
  readonly #warn: (message: string) => void;
  #grown = false;

  constructor(device: Device, folder?: string, warn: (message: string) => void = () => {}) {
    const { vk, arena, handle, capabilities } = device;
    this.#device = device;
    this.#folder = folder;
    this.#warn = warn;
    const { driver, deviceUuid, pipelineCacheUuid } = capabilities;
    const key = Bun.hash(
      `${deviceUuid} ${pipelineCacheUuid} ${driver.id} ${driver.version} ${driver.info}`,
    );
    this.#path = folder && join(folder, `pipelines-${key.toString(16)}.bin`);
    using _ = arena.frame();
    const initial = this.#read();
    const info = arena.put(VkPipelineCacheCreateInfo, {
      initialDataSize: initial?.length ?? 0,
      pInitialData: initial === undefined ? null : ptr(initial),
    });
    const cache = arena.out();
    check("vkCreatePipelineCache", vk.vkCreatePipelineCache(handle, info, null, cache.address));
    this.handle = cache.u64();
  }

  /** Says that a pipeline was compiled. */
  grew(): void {
    this.#grown = true;
  }

  save(): void {
    if (!this.#grown || this.#path === undefined || this.#folder === undefined) return;
    this.#grown = false;
    const data = this.#data();
    // Many drivers keep a cache of their own and hand out only the header.
    if (data.length <= headerBytes) return;
    if (this.#read()?.length === data.length) return;
    const temporary = `${this.#path}.${process.pid}`;
    try {
      mkdirSync(this.#folder, { recursive: true });
      writeFileSync(temporary, Buffer.concat([checksum(data), data]));
      renameSync(temporary, this.#path);
    } catch (error) {
      // Removing what was never written can fail in its own way.
      if (existsSync(temporary)) rmSync(temporary, { force: true });
      const reason = error instanceof Error ? error.message : String(error);
      this.#warn(
        `the pipeline cache could not be written to ${this.#path} (${reason}); starts stay slow`,
      );
    }
  }

  close(): void {
    this.#device.vk.vkDestroyPipelineCache(this.#device.handle, this.handle, null);
  }

  #data(): Uint8Array {
    const { vk, arena, handle } = this.#device;
    using _ = arena.frame();
    const size = arena.out();
    const call = "vkGetPipelineCacheData";
    check(call, vk.vkGetPipelineCacheData(handle, this.handle, size.address, null));
    const data = new Uint8Array(new ArrayBuffer(Number(size.u64())));
    if (data.length > 0)
      check(call, vk.vkGetPipelineCacheData(handle, this.handle, size.address, data));
    return data.subarray(0, Number(size.u64()));
  }

  #read(): Uint8Array | undefined {
    if (this.#path === undefined) return undefined;
    try {
      const file = readFileSync(this.#path);
      if (file.length <= checksumBytes + headerBytes || file.length > fileBytesMax)
        return undefined;
      const data = new Uint8Array(file.length - checksumBytes);
      data.set(file.subarray(checksumBytes));
      return checksum(data).equals(file.subarray(0, checksumBytes)) ? data : undefined;
    } catch {
      return undefined;
    }
  }
}

/** Drivers trust what they are given, so a damaged file must be found out here. */
function checksum(data: Uint8Array): Buffer {
  const bytes = Buffer.alloc(checksumBytes);
  bytes.writeBigUInt64LE(Bun.hash.xxHash64(data));
  return bytes;
}
