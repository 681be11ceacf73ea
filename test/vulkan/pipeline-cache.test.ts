/**
 * Compiled pipelines between runs. Lavapipe hands out only a header, so a driver that hands out
 * more is played by a few functions.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { toArrayBuffer, type Pointer } from "bun:ffi";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Arena, type Address } from "../../src/vulkan/arena.ts";
import type { Device } from "../../src/vulkan/device.ts";
import { PipelineCache } from "../../src/vulkan/pipeline-cache.ts";
import { Pipelines } from "../../src/vulkan/pipeline.ts";
import { VkPipelineCacheCreateInfo } from "../../src/vulkan/structs.ts";
import { adderRecipe } from "../helpers/adder.ts";
import { fakeDevice } from "../helpers/fake-device.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

const root = mkdtempSync(join(tmpdir(), "zinc-cache-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folderCount = 0;
const freshFolder = () => join(root, `${folderCount++}`, "zinc");

/** A driver that has compiled `data`, and remembers with what it was started. */
function driverWith(data: Uint8Array, capabilities = fakeDevice()) {
  const arena = new Arena(4096);
  const offsetOf = (address: Address) => Number(address) - Number(arena.addressOf(0));
  const started: (Uint8Array | undefined)[] = [];
  const vk = {
    vkCreatePipelineCache(_device: unknown, info: Address, _allocator: null, out: Address) {
      const { initialDataSize, pInitialData } = VkPipelineCacheCreateInfo.read(
        arena,
        offsetOf(info),
      );
      started.push(
        initialDataSize === 0
          ? undefined
          : new Uint8Array(toArrayBuffer(pInitialData as Pointer, 0, initialDataSize)).slice(),
      );
      arena.view.setBigUint64(offsetOf(out), 1n, true);
      return 0;
    },
    vkGetPipelineCacheData(
      _device: unknown,
      _cache: bigint,
      size: Address,
      target: Uint8Array | null,
    ) {
      arena.view.setBigUint64(offsetOf(size), BigInt(data.length), true);
      target?.set(data);
      return 0;
    },
    vkDestroyPipelineCache() {},
  };
  const device = { vk, arena, handle: 0, capabilities } as unknown as Device;
  return { device, started };
}

const compiled = new SeededRandom(1).bytes(500);

/** Starts a driver, lets it compile something, and stops it. Returns what it was started with. */
function run(folder: string | undefined, data = compiled, capabilities = fakeDevice()) {
  const warnings: string[] = [];
  const { device, started } = driverWith(data, capabilities);
  const cache = new PipelineCache(device, folder, (message) => warnings.push(message));
  cache.grew();
  cache.save();
  cache.close();
  return { startedWith: started[0], warnings };
}

describe("the cache file", () => {
  test("is written, and the next run starts with it", () => {
    const folder = freshFolder();
    expect(run(folder)).toEqual({ startedWith: undefined, warnings: [] });
    expect(readdirSync(folder)).toEqual([expect.stringMatching(/^pipelines-[0-9a-f]+\.bin$/)]);
    expect(run(folder).startedWith).toEqual(compiled);
  });

  test("is not written again if nothing was compiled, or nothing new", () => {
    const folder = freshFolder();
    const cache = new PipelineCache(driverWith(compiled).device, folder);
    cache.save();
    expect(existsSync(folder)).toBe(false);
    run(folder);
    const [name = ""] = readdirSync(folder);
    rmSync(join(folder, name));
    mkdirSync(join(folder, name));
    // Had it tried to write over the folder, it would have warned.
    const again = driverWith(new Uint8Array(20));
    new PipelineCache(again.device, folder, expect.unreachable).save();
  });

  test("grows with what is compiled later", () => {
    const folder = freshFolder();
    const larger = new SeededRandom(2).bytes(900);
    run(folder);
    expect(run(folder, larger).startedWith).toEqual(compiled);
    expect(run(folder, larger).startedWith).toEqual(larger);
  });

  test("of another driver version or device is another file", () => {
    const folder = freshFolder();
    const driver = fakeDevice().driver;
    run(folder);
    const newer = fakeDevice({ driver: { ...driver, version: driver.version + 1 } });
    expect(run(folder, compiled, newer).startedWith).toBeUndefined();
    const other = fakeDevice({ pipelineCacheUuid: "22".repeat(16) });
    expect(run(folder, compiled, other).startedWith).toBeUndefined();
    expect(readdirSync(folder).length).toBe(3);
  });

  test("without a folder is no file", () => {
    expect(run(undefined)).toEqual({ startedWith: undefined, warnings: [] });
  });

  test("is not made of a mere header", () => {
    const folder = freshFolder();
    run(folder, compiled.subarray(0, 32));
    expect(existsSync(folder)).toBe(false);
  });
});

describe("a file that cannot be trusted is ignored and replaced:", () => {
  const damages: readonly [string, (file: Uint8Array) => Uint8Array][] = [
    ["a flipped bit", (file) => file.with(100, (file[100] ?? 0) ^ 1)],
    ["a flipped bit of the checksum", (file) => file.with(0, (file[0] ?? 0) ^ 1)],
    ["an end that is missing", (file) => file.subarray(0, -1)],
    ["a byte too many", (file) => Buffer.concat([file, new Uint8Array(1)])],
    ["nothing in it", () => new Uint8Array()],
    ["eight bytes", (file) => file.subarray(0, 8)],
    ["only zeros", (file) => new Uint8Array(file.length)],
  ];
  test.each(damages)("%s", (_, damage) => {
    const folder = freshFolder();
    run(folder);
    const path = join(folder, readdirSync(folder)[0] ?? "");
    writeFileSync(path, damage(readFileSync(path)));
    expect(run(folder)).toEqual({ startedWith: undefined, warnings: [] });
    expect(run(folder).startedWith).toEqual(compiled);
  });
});

describe("a folder that cannot be written costs one warning and nothing else:", () => {
  test("a file stands in its place", () => {
    const folder = freshFolder();
    writeFileSync(join(root, `${folderCount - 1}`), "");
    const { warnings } = run(folder);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^the pipeline cache could not be written to .+\.bin \(.+\); starts stay slow$/,
      ),
    ]);
  });

  test("a folder stands in the place of the file", () => {
    const folder = freshFolder();
    run(folder);
    const [name = ""] = readdirSync(folder);
    rmSync(join(folder, name));
    mkdirSync(join(folder, name));
    expect(run(folder).warnings.length).toBe(1);
    expect(readdirSync(folder)).toEqual([name]);
  });

  test.skipIf(process.getuid?.() === 0)("it is read-only", () => {
    const folder = freshFolder();
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o555);
    expect(run(folder).warnings.length).toBe(1);
  });
});

test.skipIf(noGpu !== undefined)("a real driver's pipelines are made with a cache folder", () => {
  const { device } = testGpu();
  const folder = freshFolder();
  for (let i = 0; i < 2; i++) {
    const pipelines = new Pipelines(device, folder, expect.unreachable);

    const pipeline = pipelines.get(adderRecipe);
    expect(pipeline.label).toBe("adder");
    expect(pipelines.get(adderRecipe)).toBe(pipeline);
    expect(pipelines.count).toBe(1);
    pipelines.save();
    pipelines.close();
  }
});
