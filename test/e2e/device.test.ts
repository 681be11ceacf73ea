/** No loader, no driver, no device, the wrong one: exit code 4 and the remedy. And the cache. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  answer,
  cleanUp,
  files,
  folder,
  home,
  json,
  noDriver,
  refusal,
  testTimeoutMs,
  write,
  zinc,
} from "../helpers/binary.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const isLinux = process.platform === "linux";
const installDriver = "install your GPU's Vulkan driver (Debian, Ubuntu: mesa-vulkan-drivers)";

/** A folder of libraries that are empty files: what is looked for is found and cannot be loaded. */
function brokenLoader(): Record<string, string> {
  const place = join(files, "lib");
  mkdirSync(place, { recursive: true });
  for (const name of ["libvulkan.so.1", "libvulkan.so"]) writeFileSync(join(place, name), "");
  return { LD_LIBRARY_PATH: place };
}

const deviceCommands = [
  [["--prompt", "Hi", "-n", "1"]],
  [["devices"]],
  [["devices", "--json"]],
  [["verify"]],
  [["bench"]],
  [["logits", "--tokens", "1"]],
];

describe.skipIf(!isLinux)("without a Vulkan loader", () => {
  const line =
    "no Vulkan loader found (tried libvulkan.so.1, libvulkan.so); " +
    "install it (Debian, Ubuntu: libvulkan1; Fedora: vulkan-loader; Arch: vulkan-icd-loader; " +
    "Windows: your GPU's driver)";

  test.each(deviceCommands)("zinc %p", async (args) => {
    expect(await refusal(4, args, { env: brokenLoader() })).toBe(line);
  });

  test("--check reports it with everything that it could look at", async () => {
    const { code, out, err } = await zinc(["--check", "--json"], { env: brokenLoader() });
    expect({ code, err }).toEqual({ code: 1, err: "" });
    const report = JSON.parse(out) as { checks: { name: string; status: string }[] };
    expect(report).toMatchObject({ ok: false, device: null });
    expect(report.checks).toContainEqual({ name: "vulkan", status: "fail", detail: line } as never);
    expect(report.checks).toContainEqual(expect.objectContaining({ name: "model", status: "ok" }));
  });

  test("what needs no device works", async () => {
    const env = brokenLoader();
    expect(await json<number[]>(["tokenize"], { stdin: "Hi", env })).not.toEqual([]);
    expect(await answer(["model", "info"], { env })).toContain("Spark Llama");
    expect(await answer(["--version"], { env })).toStartWith("zinc ");
  });
});

describe.skipIf(!isLinux)("without a driver", () => {
  const env = { VK_DRIVER_FILES: "/none.json" };

  test.each(deviceCommands)("zinc %p", async (args) => {
    const line = await refusal(4, args, { env });
    // Which of the two depends on the loader.
    expect(line).toMatch(/there is no usable Vulkan driver|no Vulkan device found/);
    expect(line).toContain(`; ${installDriver}`);
  });

  test("--check blames the variable", async () => {
    const { code, out } = await zinc(["--check"], { env });
    expect(code).toBe(1);
    expect(out).toMatch(
      /^WARN {2}drivers {10}the environment names \/none\.json, which does not exist: unset VK_D/m,
    );
    expect(out).toContain(installDriver);
    expect(out).toEndWith("1 failed, 1 warning: zinc will not work as it is\n");
  });
});

describe.skipIf(noDriver !== undefined)("devices", () => {
  interface Row {
    readonly index: number;
    readonly name: string;
  }

  test("lists what there is, as text and as JSON", async () => {
    const rows = await json<Row[]>(["devices", "--json"]);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({ index: 0, kind: "cpu", usable: true, default: true });
    const text = await answer(["devices"]);
    expect(text).toStartWith(`* 0  ${rows[0]?.name}\n    cpu, `);
  });

  test("can be chosen by number and by a part of the name in any case", async () => {
    for (const device of ["0", "LLVMpipe"]) {
      const args = ["--device", device, "--prompt", "Hi", "-n", "1", "--quiet"];
      expect((await answer(args)).length).toBeGreaterThan(1);
    }
  });

  test.each([
    [["-d", "9"], "9"],
    [["--device", "voodoo"], "voodoo"],
    [["--device", "-1"], "-1"],
  ])("zinc %p matches nothing, and those that there are are listed", async (args, wish) => {
    expect(await refusal(4, [...args, "--prompt", "Hi"])).toMatch(
      new RegExp(`^no device matches --device ${wish}; there are: 0 llvmpipe .+$`),
    );
  });
});

describe.skipIf(noDriver !== undefined)("the cache", () => {
  const args = ["--prompt", "What is 7 + 5?", "--temp", "0"];

  /** Runs with a cache that cannot be used: that is worth a warning at most. */
  async function runWith(env: Record<string, string | undefined>): Promise<void> {
    // The driver's own cache, without which it compiles everything again, is none of ours.
    const driver = { MESA_SHADER_CACHE_DIR: join(home, ".cache") };
    const { code, out, err } = await zinc(args, { env: { ...driver, ...env } });
    expect({ code, text: out.includes("12") }).toEqual({ code: 0, text: true });
    for (const line of err.split("\n")) expect(line).not.toMatch(/^zinc: (?!warning: )/);
  }

  test("may be a file, in a place that does not exist, or nowhere", async () => {
    await runWith({ XDG_CACHE_HOME: write("file", "") });
    await runWith({ XDG_CACHE_HOME: "/proc/none" });
    await runWith({ HOME: "/proc/none" });
    await runWith({ HOME: undefined });
    await runWith({ HOME: "" });
  });

  test.skipIf(!existsSync("/dev/full"))("may be full", async () => {
    await runWith({ XDG_CACHE_HOME: "/dev/full" });
  });

  test("is never made beside the user's files by a relative path", async () => {
    await runWith({ XDG_CACHE_HOME: "relative" });
    expect(existsSync(join(folder, "relative/zinc"))).toBe(false);
  });
});
