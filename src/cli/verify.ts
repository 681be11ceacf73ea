/** `zinc verify`: every kernel variant against plain loops, on the user's own device. */
import { nextTurn } from "../engine/turn.ts";
import { UserError } from "../errors.ts";
import type { VerifyCase } from "../kernels/verify/case.ts";
import { verify, verifyCases, type Verdict } from "../kernels/verify/verify.ts";
import { cacheFolder } from "../paths.ts";
import { Gpu } from "../vulkan/gpu.ts";
import { command } from "./command.ts";
import { toggle } from "./flag.ts";
import { deviceFlags, outputFlags } from "./flags.ts";
import { runExitCodes } from "./manual.ts";
import { setQuiet, warn, writeOut } from "./output.ts";
import { shorten, suggestion } from "./options.ts";
import { Progress } from "./progress.ts";
import { signalExitCode, stopGently } from "./signals.ts";

const kernels: readonly string[] = [...new Set(verifyCases.map(({ kernel }) => kernel))];

export const verifyCommand = command({
  name: "verify",
  summary: "Check every kernel against plain loops on this device",
  description: `
    Runs each kernel in each variant that this device can use, and compares the results with
    loops in plain TypeScript. What it lists as wrong is a fault of the driver or of zinc:
    please report it.
  `,
  examples: {
    "zinc verify": "names what is wrong, if anything",
    "zinc verify --all -d 1": "lists everything, on another device",
    "zinc verify attention rms_norm": "some kernels alone",
  },
  positionals: {
    KERNEL: { description: "what to check, all by default", completes: kernels, repeats: true },
  },
  exitCodes: { 1: "a kernel is wrong", 4: runExitCodes[4], 130: runExitCodes[130] },
  flags: { ...deviceFlags, all: toggle("list the kernels that are right, too"), ...outputFlags },
  async run({ device, all, json, quiet }, wanted) {
    setQuiet(quiet === true);
    const cases = casesOf(wanted);
    const gpu = Gpu.open({ device, cacheFolder: cacheFolder(), warn });
    const verdicts: Verdict[] = [];
    stopGently();
    try {
      using progress = new Progress("verify");
      for (const [i, verifyCase] of cases.entries()) {
        if (signalExitCode() !== undefined) break;
        progress.step(i + 1, cases.length, `${verifyCase.kernel} ${verifyCase.variant}`);
        verdicts.push(verify(gpu, verifyCase));
        await nextTurn();
      }
    } finally {
      gpu.close();
    }
    const failed = verdicts.filter(({ status }) => status === "fail");
    const ok = failed.length === 0 && verdicts.length === cases.length;
    if (json === true) await writeOut(`${JSON.stringify({ ok, kernels: verdicts })}\n`);
    else await writeReport(all === true ? verdicts : failed, verdicts);
    return signalExitCode() ?? (ok ? 0 : 1);
  },
});

/** Throws a "usage" error for a kernel that there is not. */
function casesOf(wanted: readonly string[]): readonly VerifyCase[] {
  const unknown = wanted.find((name) => !kernels.includes(name));
  if (unknown !== undefined) {
    const remedy = suggestion(unknown, kernels) ?? `there are ${kernels.join(", ")}`;
    throw new UserError("usage", `unknown kernel "${shorten(unknown)}"`, remedy);
  }
  if (wanted.length === 0) return verifyCases;
  return verifyCases.filter(({ kernel }) => wanted.includes(kernel));
}

async function writeReport(shown: readonly Verdict[], all: readonly Verdict[]): Promise<void> {
  for (const { status, kernel, variant, case: name, maxRelativeError } of shown) {
    const error = maxRelativeError.toExponential(1);
    await writeOut(`${status.padEnd(4)} ${kernel} ${variant}: ${name} (error ${error})\n`);
  }
  const count = (status: Verdict["status"]) =>
    all.filter((verdict) => verdict.status === status).length;
  await writeOut(`${count("ok")} ok, ${count("fail")} failed, ${count("skip")} skipped\n`);
}
