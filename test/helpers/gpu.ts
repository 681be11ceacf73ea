/**
 * The device of the tests: Mesa's software driver, opened once a process and closed behind the last
 * test, or the reason why there is none. Files that import this are GPU suites of `test/run.ts`.
 */
import { UserError } from "../../src/errors.ts";
import { Gpu } from "../../src/vulkan/gpu.ts";

/** `ZINC_TEST_DEVICE` names another one. */
const wish = process.env["ZINC_TEST_DEVICE"] ?? "llvmpipe";

/** A run in which a missing device is a failure. */
export const isGpuExpected =
  process.env["ZINC_EXPECT_GPU"] === "1" || (process.env["CI"] ?? "") !== "";

let opened: Gpu | undefined;

/** Why GPU tests are skipped; undefined where there is a device. For `test.skipIf`. */
export const noGpu: string | undefined = reasonToSkip();

/** The device. Only for tests that are skipped if there is none. */
export function testGpu(): Gpu {
  opened ??= Gpu.open({ device: wish });
  return opened;
}

/** Tests must have freed what they made: the validation layer tells what is left over. */
export function closeTestGpu(): void {
  opened?.close();
  opened = undefined;
}

function reasonToSkip(): string | undefined {
  try {
    testGpu();
    return undefined;
  } catch (error) {
    if (error instanceof UserError && error.kind === "device") return error.text;
    throw error;
  }
}
