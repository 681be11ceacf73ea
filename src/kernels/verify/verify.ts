/**
 * Runs kernels on the user's own device and compares them with plain loops: `zinc verify` and the
 * kernel tests.
 */
import type { Capabilities } from "../../vulkan/capabilities.ts";
import type { Device } from "../../vulkan/device.ts";
import type { Gpu } from "../../vulkan/gpu.ts";
import { holdsQuads, probeFragments } from "../fragments.ts";
import { matrixUnitsOf } from "../matrix-units.ts";
import { teamOf } from "../reduction.ts";
import { sampleCases } from "./sample-cases.ts";
import type { VerifyCase } from "./case.ts";
import { attentionCases } from "./attention-cases.ts";
import { expertVerifyCases } from "./expert-cases.ts";
import { expertContestCases } from "./expert-contest-cases.ts";
import { flashCases } from "./flash-cases.ts";
import { halvesCases } from "./halves-cases.ts";
import { layerCases } from "./layer-cases.ts";
import { linearCases } from "./linear-cases.ts";
import { linearContestCases } from "./linear-contest-cases.ts";
import { matmulCases } from "./matmul-cases.ts";
import { recurrentCases } from "./recurrent-cases.ts";
import { rotaryAttentionCases } from "./rotary-attention-cases.ts";
import { routerCases } from "./router-cases.ts";
import { repackCases } from "./repack-cases.ts";
import { ropeCases } from "./rope-cases.ts";
import { sortedExpertCases } from "./sorted-expert-cases.ts";
import { unscrambleCases } from "./unscramble-cases.ts";
import { Workbench } from "./workbench.ts";

export const verifyCases: readonly VerifyCase[] = [
  ...repackCases,
  ...layerCases,
  ...attentionCases,
  ...rotaryAttentionCases,
  ...flashCases,
  ...unscrambleCases,
  ...ropeCases,
  ...recurrentCases,
  ...linearCases,
  ...linearContestCases,
  ...matmulCases,
  ...halvesCases,
  ...expertVerifyCases,
  ...expertContestCases,
  ...sortedExpertCases,
  ...routerCases,
  ...sampleCases,
];

export interface Verdict {
  readonly kernel: string;
  readonly variant: string;
  readonly case: string;
  readonly maxRelativeError: number;
  readonly status: "ok" | "fail" | "skip";
}

const offers = {
  subgroup: (capabilities) => teamOf({ capabilities }).reduction === "subgroup",
  "matrix units": (capabilities) => matrixUnitsOf(capabilities) !== undefined,
  "known fragments": holdsQuads,
} satisfies Record<NonNullable<VerifyCase["needs"]>, (capabilities: Capabilities) => boolean>;

/** Whether a device has what a case needs. */
export function isOffered({ capabilities }: Device, { needs }: VerifyCase): boolean {
  return needs === undefined || offers[needs](capabilities);
}

/** Runs one case; a variant that the device cannot run is skipped. */
export function verify(gpu: Gpu, verifyCase: VerifyCase): Verdict {
  const { kernel, variant, name, bound, run } = verifyCase;
  const described = { kernel, variant, case: name };
  probeFragments(gpu);
  if (!isOffered(gpu.device, verifyCase)) {
    return { ...described, maxRelativeError: 0, status: "skip" };
  }
  const bench = new Workbench(gpu);
  try {
    const maxRelativeError = run(bench);
    return { ...described, maxRelativeError, status: maxRelativeError <= bound ? "ok" : "fail" };
  } finally {
    bench.free();
  }
}
