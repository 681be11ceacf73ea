/**
 * Every pipeline that zinc would choose on AMD GPUs that need not be here, compiled by Mesa's RADV:
 * registers, spills, occupancy and code size as a table, held against a baseline.
 *
 *     bun run radv             the worst pipelines of each kernel, and what has changed
 *     bun run radv --all       all of them
 *     bun run radv --update    makes the figures the new baseline
 *
 * Fails if a pipeline does not compile, spills, needs scratch memory, or leaves too few subgroups
 * on a SIMD; and if there are fewer than the baseline's where that is of the same driver.
 */
import { existsSync } from "node:fs";
import { Instance } from "../src/vulkan/instance.ts";
import { Device } from "../src/vulkan/device.ts";
import { Pipelines } from "../src/vulkan/pipeline.ts";
import { readStatistics } from "../src/vulkan/statistics.ts";
import { compare, readBaseline, writeBaseline, type Baseline } from "./radv/baseline.ts";
import { faultsOf, figuresOf, type Compiled, type Figures } from "./radv/figures.ts";
import { recordPipelines } from "./radv/recorder.ts";
import { modelShapes } from "./radv/shapes.ts";

/**
 * Radeon RX 7900 XTX; Radeon 8060S (Strix Halo); Radeon RX 9070 XT and AI PRO R9700. Without
 * hardware RADV takes the last two for having two thirds of their registers.
 */
const families = ["navi31", "gfx1151", "gfx1201"] as const;
const subgroupSizes = [32, 64];

const driverPaths = [
  "/usr/share/vulkan/icd.d/radeon_icd.json",
  "/usr/share/vulkan/icd.d/radeon_icd.x86_64.json",
  "/usr/share/vulkan/icd.d/radeon_icd.aarch64.json",
  "/etc/vulkan/icd.d/radeon_icd.json",
];

interface FamilyResult {
  readonly driver: string;
  readonly compiled: Compiled;
}

/** Where RADV is; undefined if Mesa came without it. */
export function radvPath(): string | undefined {
  return driverPaths.find((path) => existsSync(path));
}

async function main(flags: ReadonlySet<string>): Promise<number> {
  const path = radvPath();
  if (path === undefined) {
    console.log("there is no RADV (Debian, Ubuntu: mesa-vulkan-drivers)");
    return 1;
  }
  // The driver reads the family when it starts, so each has a process.
  const results = await Promise.all(families.map((family) => compileApart(family, path)));
  const after: Baseline = {
    driver: results[0]?.driver ?? "",
    families: Object.fromEntries(families.map((name, i) => [name, results[i]?.compiled ?? {}])),
  };
  const before = readBaseline();
  let failures = 0;
  for (const [family, compiled] of Object.entries(after.families)) {
    console.log(`\n${family}: ${Object.keys(compiled).length} pipelines by ${after.driver}`);
    console.log(tableOf(compiled, flags.has("--all")));
    failures += report(compiled, before, family, after.driver, flags.has("--update"));
  }
  if (flags.has("--update")) writeBaseline(after);
  console.log(`\n${failures === 0 ? "fine" : `${failures} failures`}`);
  return failures === 0 ? 0 : 1;
}

/** Prints what is wrong and what has changed; returns how much is wrong. */
function report(
  compiled: Compiled,
  before: Baseline,
  family: string,
  driver: string,
  isUpdate: boolean,
): number {
  const faults = Object.entries(compiled).flatMap(([name, figures]) =>
    faultsOf(name, figures).map((fault) => `${name}: ${fault}`),
  );
  const { worse, changed } = compare(before.families[family] ?? {}, compiled);
  const isComparable = before.driver === driver;
  for (const line of faults) console.log(`FAULT ${line}`);
  if (isUpdate) return faults.length;
  for (const line of worse) console.log(`${isComparable ? "WORSE" : "worse"} ${line}`);
  for (const line of changed.slice(0, 20)) console.log(`changed ${line}`);
  if (changed.length > 20) console.log(`changed, too: ${changed.length - 20} more`);
  if (worse.length + changed.length > 0) console.log("if that is right: bun run radv --update");
  return faults.length + (isComparable ? worse.length : 0);
}

const columns = ["VGPRs", "spills", "scratch", "LDS", "waves", "code"] as const;

/** All pipelines, or of each kernel's variant the one that leaves the fewest waves. */
function tableOf(compiled: Compiled, isWhole: boolean): string {
  const rows = Object.entries(compiled).flatMap(([name, figures]) =>
    typeof figures === "string" ? [] : [{ name, figures }],
  );
  const groups = Map.groupBy(rows, ({ name }) => (isWhole ? name : kernelOf(name)));
  const lines = [...groups.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const shown = lines.map(([group, members]) => {
    const worst = members.toSorted((a, b) => weightOf(b.figures) - weightOf(a.figures))[0];
    const {
      vgprs = 0,
      spills = 0,
      scratchBytes = 0,
      ldsBytes = 0,
      waves = 0,
      codeBytes = 0,
    } = worst?.figures ?? {};
    const count = isWhole ? "" : ` ×${members.length}`;
    return [`${group}${count}`, vgprs, spills, scratchBytes, ldsBytes, waves, codeBytes];
  });
  const width = Math.max(...shown.map(([name]) => String(name).length));
  return [["pipeline", ...columns], ...shown]
    .map(([name, ...cells]) =>
      [String(name).padEnd(width), ...cells.map((cell) => String(cell).padStart(7))].join(" "),
    )
    .join("\n");
}

/** "linear int8 wave32" of "linear.Q4_K.subgroup.int8(32,32) wave32". */
function kernelOf(name: string): string {
  const [, module = name, wave = ""] = /^([\w.]+)(?:\([\d,]*\))?(?: (wave\d+))?$/.exec(name) ?? [];
  const [kernel, ...axes] = module.split(".");
  const telling = axes.filter((axis) => /^[a-z]/.test(axis) && axis !== "subgroup");
  return [kernel, ...telling, wave].filter(Boolean).join(" ");
}

function weightOf({ waves, vgprs, codeBytes }: Figures): number {
  return -waves * 1e6 + vgprs * 1e3 + codeBytes / 1e3;
}

async function compileApart(family: string, path: string): Promise<FamilyResult> {
  const child = Bun.spawn([process.execPath, import.meta.path, "--family", family], {
    env: {
      ...process.env,
      RADV_FORCE_FAMILY: family,
      VK_DRIVER_FILES: path,
      VK_ICD_FILENAMES: path,
      ZINC_VALIDATE: "0",
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${family} ended with code ${code}: ${errors.trim()}`);
  return JSON.parse(output) as FamilyResult;
}

/** In a process where RADV is the only driver and its hardware a fake. */
function compileFamily(): FamilyResult {
  const instance = Instance.create();
  const [physical] = instance.devices;
  if (physical === undefined) throw new Error("RADV offers no device");
  const device = Device.open(instance, physical, { statistics: true });
  const pipelines = new Pipelines(device);
  const recipes = recordPipelines(device, modelShapes, subgroupSizes);
  const compiled = recipes.map((recipe) => {
    try {
      const pipeline = pipelines.get(recipe);
      return [pipeline.label, figuresOf(readStatistics(device, pipeline).values)] as const;
    } catch (error) {
      const name = `${recipe.name}(${recipe.constants?.join() ?? ""})`;
      return [name, error instanceof Error ? error.message : String(error)] as const;
    }
  });
  return { driver: physical.capabilities.driver.info, compiled: Object.fromEntries(compiled) };
}

if (import.meta.main) {
  const args = process.argv.slice(2);
  if (args[0] === "--family") console.log(JSON.stringify(compileFamily()));
  else process.exitCode = await main(new Set(args));
}
