/** Every kernel variant against plain loops: the same cases as `zinc verify`. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { isOffered, verify, verifyCases } from "../../src/kernels/verify/verify.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";

// A software driver that has never seen a shader takes seconds to compile it.
setDefaultTimeout(120_000);

const named = verifyCases.map((verifyCase) => {
  const { kernel, variant, name } = verifyCase;
  return [`${kernel} ${variant}: ${name}`, verifyCase] as const;
});

/**
 * Sevenths of the cases, "0,1,2", that this process takes; all by default. `test/run.ts` shares
 * them out over two processes. The cases of a type are ten, so each share has some slow ones.
 */
const shares = (process.env["ZINC_SHARES"] ?? "0,1,2,3,4,5,6").split(",").map(Number);

test("no two cases have the same name", () => {
  expect(new Set(named.map(([name]) => name)).size).toBe(named.length);
});

const shared = named.filter((_, i) => shares.includes(i % 7));
const isRunnable = ([, verifyCase]: (typeof named)[number]) =>
  noGpu === undefined && isOffered(testGpu().device, verifyCase);

test.each(shared.filter(isRunnable))("%s", (_, verifyCase) => {
  const { status, maxRelativeError } = verify(testGpu(), verifyCase);
  expect({ status, maxRelativeError }).toEqual({ status: "ok", maxRelativeError });
});

test.skip.each(shared.filter((one) => !isRunnable(one)))("%s", () => {});
