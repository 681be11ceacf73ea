/**
 * The whole path on the user's own device: the built-in model's logits for a fixed prompt against
 * stored ones.
 */
import { selfTest } from "../../builtin/self-test.ts";
import { load } from "../../index.ts";
import { failure, ok, type CheckResult } from "./result.ts";

/** Share of the logits' standard deviation; float kernels stay below a tenth of it. */
const bound = 0.01;

export async function checkSelfTest(device: string | undefined): Promise<CheckResult> {
  using model = await load(undefined, { device, contextTokens: 256 });
  const logits = model.logits(selfTest.tokens);
  const mean = logits.reduce((sum, logit) => sum + logit, 0) / logits.length;
  const deviation = Math.sqrt(
    logits.reduce((sum, logit) => sum + (logit - mean) ** 2, 0) / logits.length,
  );
  // A NaN among them stays one.
  const worst = Math.max(
    ...selfTest.logits.map(([id, expected]) => Math.abs((logits[id] ?? Number.NaN) - expected)),
  );
  const error = worst / deviation;
  const detail =
    `${selfTest.logits.length} logits of the built-in model, ` +
    `off by ${(error * 100).toFixed(3)}% of their deviation`;
  return error <= bound
    ? ok("self-test", detail)
    : failure(
        "self-test",
        `${detail}: this driver computes wrongly; update it, and run zinc verify`,
      );
}
