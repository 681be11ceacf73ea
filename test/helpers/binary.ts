/**
 * The built executable as people run it: alone in an empty folder, with an environment of little
 * more than HOME, on Mesa's software driver. Built first if it is older than its sources.
 */
import { expect } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");
const bun = join(root, "node_modules/.bin/bun");
/**
 * Longer than any run here takes, also when the driver's cache is empty and it compiles every
 * kernel of `--check`: what exceeds it hangs.
 */
const timeoutMs = 400_000;

/** For a test with several runs. Every file sets it, since Bun's own is 5 s a test. */
export const testTimeoutMs = 600_000;

export const binary: string = join(root, "dist/zinc");

/** Mesa's software driver, alone: the same on every machine, and quicker to start than all. */
const manifest: string | undefined = lavapipeManifest();

/** Why tests that need a device are skipped; undefined where there is one. */
export const noDriver: string | undefined =
  manifest === undefined ? "Mesa's software driver is not installed" : undefined;

/** The real one, because the driver keeps its cache of compiled shaders there. */
export const home: string = process.env["HOME"] ?? join(root, "node_modules/.cache/zinc/home");

const place = mkdtempSync(join(tmpdir(), "zinc-e2e-"));

/** What the tests' runs find in their environment, unless they say otherwise. */
export const environment: Readonly<Record<string, string>> = {
  HOME: home,
  // Models that somebody has downloaded and chosen change no test.
  XDG_CONFIG_HOME: join(place, "config"),
  ZINC_MODELS: join(place, "models"),
  ...(manifest !== undefined && { VK_DRIVER_FILES: manifest }),
};

/** An empty folder, in which all runs start. */
export const folder: string = join(place, "empty");

/** For what runs read. */
export const files: string = join(place, "files");

/** Removes both; for `afterAll` of every file. They come back when they are needed. */
export function cleanUp(): void {
  rmSync(place, { recursive: true, force: true });
}

export interface RunOptions {
  /** Empty by default; null is a pipe into which nobody writes. */
  readonly stdin?: string | Uint8Array<ArrayBuffer> | null;
  /** Added to the usual environment; undefined takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface Outcome {
  /** The exit code; 128 and the signal's number if a signal ended it. */
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly ms: number;
  /** Time of the processors, which other work on the machine does not stretch much. */
  readonly processorMs: number;
}

/** Runs zinc to its end. It must not hang or show a stack. */
export async function zinc(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
  const started = performance.now();
  const child = start(args, options);
  const killer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  clearTimeout(killer);
  const ms = performance.now() - started;
  if (ms >= timeoutMs) throw new Error(`zinc ${args.join(" ")} hangs: ${out}${err}`);
  if (options.env?.["ZINC_DEBUG"] === undefined) expect(err).not.toMatch(/^\s+at /m);
  const processorMs = Number(child.resourceUsage()?.cpuTime.total ?? 0n) / 1000;
  return { code, out, err, ms, processorMs };
}

/** Starts zinc; the caller reads, signals and waits. */
export function start(args: readonly string[], { stdin = "", env = {} }: RunOptions = {}) {
  ensureBuilt();
  return Bun.spawn([binary, ...args], {
    cwd: folder,
    env: definedOf({ ...environment, ...env }),
    stdin: stdin === null ? "pipe" : new Blob([stdin]),
    stdout: "pipe",
    stderr: "pipe",
  });
}

function definedOf(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((row): row is [string, string] => row[1] !== undefined),
  );
}

/** The answer of a run that must succeed. */
export async function answer(args: readonly string[], options?: RunOptions): Promise<string> {
  const { code, out, err } = await zinc(args, options);
  if (code !== 0) throw new Error(`zinc ${args.join(" ")} exits with ${code}: ${err}`);
  return out;
}

/** The JSON value that a run prints, on one line and nothing else. */
export async function json<T>(args: readonly string[], options?: RunOptions): Promise<T> {
  const out = await answer(args, options);
  expect(out).toEndWith("\n");
  expect(out.trimEnd()).not.toContain("\n");
  return JSON.parse(out) as T;
}

/**
 * The error of a run that must fail with this exit code: one line at the end of stderr. Nothing is
 * on stdout, and before the error stand warnings and notes at most.
 */
export async function refusal(
  code: number,
  args: readonly string[],
  options?: RunOptions,
): Promise<string> {
  const outcome = await zinc(args, options);
  expect(outcome).toMatchObject({ code, out: "" });
  const lines = outcome.err.split("\n");
  expect(lines.pop()).toBe("");
  const line = lines.pop() ?? "";
  expect(line).toStartWith("zinc: ");
  for (const other of lines) expect(other).not.toMatch(/^zinc: (?!warning: )/);
  return line.slice("zinc: ".length);
}

let fileCount = 0;

/** Writes a file outside of the folder of the runs and returns its path. */
export function write(name: string, content: string | Uint8Array): string {
  mkdirSync(files, { recursive: true });
  const path = join(files, `${++fileCount}-${name}`);
  writeFileSync(path, content);
  return path;
}

let isBuilt = false;

/** Makes the folder, and builds `dist/zinc` unless it is newer than what it is made of. */
export function ensureBuilt(): void {
  mkdirSync(folder, { recursive: true });
  if (isBuilt) return;
  mkdirSync(home, { recursive: true });
  const sources = ["src", "shaders"].flatMap((name) =>
    readdirSync(join(root, name), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.startsWith("shaders."))
      .map((entry) => join(entry.parentPath, entry.name)),
  );
  sources.push(join(root, "build.ts"), join(root, "package.json"));
  const newest = Math.max(...sources.map((path) => statSync(path).mtimeMs));
  if (!existsSync(binary) || statSync(binary).mtimeMs < newest) {
    const { exitCode, stderr } = Bun.spawnSync([bun, "run", join(root, "build.ts")], { cwd: root });
    if (exitCode !== 0) throw new Error(`the build failed: ${stderr.toString()}`);
  }
  isBuilt = true;
}

function lavapipeManifest(): string | undefined {
  const place = "/usr/share/vulkan/icd.d";
  const names = existsSync(place) ? readdirSync(place) : [];
  const name = names.find((found) => /^lvp_icd.*\.json$/.test(found));
  return name && join(place, name);
}
