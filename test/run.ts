/**
 * All tests, as `npm test` starts them behind the build: types and format, then the suites without
 * a GPU, then those with one under the validation layer. Ends with what failed, once more, and
 *
 *     N passed, N failed[, N skipped]
 *
 * and exit code 0 if nothing failed. A suite that crashes counts as one failure more.
 *
 *     bun test/run.ts [part of a path …]    only test files whose paths contain one of these
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { radvPath } from "./radv.ts";

const root = join(import.meta.dir, "..");
const bun = process.execPath;
/** Software drivers need long for what they have not seen before. */
const timeoutMs = "120000";
/** Most of the time goes into compiling its shaders, on one core: two processes share it. */
const conformance = "test/kernels/conformance.test.ts";

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** What the failed ones said. */
  readonly complaints?: readonly string[];
}

interface Suite {
  readonly title: string;
  readonly files: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

async function main(wanted: readonly string[]): Promise<number> {
  const started = performance.now();
  const files = [...new Bun.Glob("test/**/*.test.ts").scanSync({ cwd: root })]
    .filter((file) => isWanted(file, wanted))
    .toSorted();
  const results = [
    await check("types", [bun, "check"]),
    await check("format", [bun, "fmt", "--check"]),
    ...(isWanted("radv", wanted) ? [await checkRadv()] : []),
    ...(await runSuites(plainSuites(files.filter((file) => !usesGpu(file))))),
    ...(await runSuites(gpuSuites(files.filter(usesGpu)))),
  ];
  const sum = (key: "passed" | "failed" | "skipped") =>
    results.reduce((total, counts) => total + counts[key], 0);
  const [passed, failed, skipped] = [sum("passed"), sum("failed"), sum("skipped")];
  for (const { complaints = [] } of results) {
    for (const complaint of complaints) console.log(`\n=== failed\n${complaint}`);
  }
  console.log(`\nin ${((performance.now() - started) / 1000).toFixed(0)} s`);
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
  return failed === 0 ? 0 : 1;
}

function isWanted(name: string, wanted: readonly string[]): boolean {
  return wanted.length === 0 || wanted.some((part) => name.includes(part));
}

/** Pipelines for AMD GPUs, compiled without them. */
async function checkRadv(): Promise<Counts> {
  if (radvPath() !== undefined) return check("AMD's pipelines", [bun, "run", "test/radv.ts"]);
  console.log("\n=== AMD's pipelines: skipped, because Mesa has no RADV here");
  return { passed: 0, failed: 0, skipped: 1 };
}

/** Most time goes into starting programs: two processes share those, and one has the rest, too. */
function plainSuites(files: readonly string[]): Suite[] {
  const programs = files.filter((file) => /^test\/e2e\//.test(file));
  const first = programs.filter((_, i) => i % 2 === 0);
  return [
    { title: "without a GPU", files: files.filter((file) => !first.includes(file)) },
    { title: "without a GPU, beside", files: first },
  ];
}

function gpuSuites(files: readonly string[]): Suite[] {
  const env = {
    ZINC_VALIDATE: "1",
    // The set-up script installs a software driver on Linux.
    ZINC_EXPECT_GPU: process.env["ZINC_EXPECT_GPU"] ?? (process.platform === "linux" ? "1" : "0"),
  };
  const models = files.filter((file) => file.startsWith("test/model/"));
  const others = files.filter((file) => !models.includes(file));
  const shared = files.filter((file) => file === conformance);
  return [
    { title: "on a GPU", files: others, env: { ...env, ZINC_SHARES: "0,1,2,3,4" } },
    {
      title: "on a GPU, beside",
      files: [...models, ...shared],
      env: { ...env, ZINC_SHARES: "5,6" },
    },
  ];
}

/** GPU suites import the test device. */
function usesGpu(file: string): boolean {
  const text = readFileSync(join(root, file), "utf8");
  return /from "(?:\.|[./]*\/helpers)\/gpu\.ts"/.test(text);
}

/** A check that passes or fails as a whole. */
async function check(title: string, command: readonly string[]): Promise<Counts> {
  console.log(`\n=== ${title}`);
  const { output, exitCode } = await run(command, {}, true);
  if (exitCode === 0) return { passed: 1, failed: 0, skipped: 0 };
  return { passed: 0, failed: 1, skipped: 0, complaints: [`${title}\n${lastLines(output)}`] };
}

/** `bun test` on each suite, all at once; the first is shown as it runs, the others afterwards. */
async function runSuites(suites: readonly Suite[]): Promise<Counts[]> {
  const present = suites.filter(({ files }) => files.length > 0);
  const running = present.map(({ files, env = {} }, i) => {
    const command = [bun, "test", "--timeout", timeoutMs, ...files.map((file) => `./${file}`)];
    if (i === 0) console.log(titleOf(present[i]));
    return run(command, env, i === 0);
  });
  const counts: Counts[] = [];
  for (const [i, result] of running.entries()) {
    const { output, exitCode } = await result;
    if (i > 0) console.log(`${titleOf(present[i])}\n${output.trimEnd()}`);
    const counted = countsOf(output, exitCode);
    if (counted !== undefined) {
      counts.push({ ...counted, complaints: complaintsOf(output) });
      continue;
    }
    const crash = `${titleOf(present[i])}\nended with code ${exitCode} and no result`;
    const complaints = [...complaintsOf(output), `${crash}\n${lastLines(output)}`];
    counts.push({ passed: 0, failed: 1, skipped: 0, complaints });
  }
  return counts;
}

function titleOf(suite: Suite | undefined): string {
  return `\n=== ${suite?.title}: ${suite?.files.length} files`;
}

/** What `bun test` says at its end; undefined if it did not get there, or fell behind it. */
export function countsOf(output: string, exitCode: number): Counts | undefined {
  const last = (pattern: string) => [...output.matchAll(new RegExp(pattern, "gm"))].at(-1)?.[1];
  const count = (word: string) => Number(last(`^ *(\\d+) ${word}$`) ?? 0);
  const [passed, failed] = [count("pass"), count("fail")];
  const isFinished = last("^(Ran) \\d+ tests? across \\d+ files?\\.") !== undefined;
  if (!isFinished || (exitCode !== 0) !== failed > 0) return undefined;
  return { passed, failed, skipped: count("skip") + count("todo") };
}

/** Each failed test of `bun test`, by its last line, behind the lines that it printed. */
export function complaintsOf(output: string): string[] {
  const complaints: string[] = [];
  let lines: string[] = [];
  for (const line of output.split("\n")) {
    if (/^ *\d+ tests? failed:$/.test(line)) break;
    lines.push(line);
    if (line.startsWith("(fail) ")) complaints.push(lastLines(lines.join("\n")));
    if (/^\((?:pass|fail|skip|todo)\) /.test(line)) lines = [];
  }
  return complaints;
}

function lastLines(output: string, count = 40): string {
  return output.trimEnd().split("\n").slice(-count).join("\n");
}

/** Runs a command to its end and returns what it said; shows that as it comes if `isLive`. */
async function run(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  isLive: boolean,
): Promise<{ output: string; exitCode: number }> {
  const child = Bun.spawn([...command], {
    cwd: root,
    env: { ...process.env, ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors, exitCode] = await Promise.all([
    textOf(child.stdout, isLive ? process.stdout : undefined),
    textOf(child.stderr, isLive ? process.stderr : undefined),
    child.exited,
  ]);
  return { output: output + errors, exitCode };
}

/** The text of a stream, which is copied to a terminal meanwhile. */
async function textOf(
  from: ReadableStream<Uint8Array>,
  to: NodeJS.WriteStream | undefined,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of from) {
    to?.write(chunk);
    text += decoder.decode(chunk, { stream: true });
  }
  return text;
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
