/**
 * Preloaded by `bunfig.toml`: with ZINC_VALIDATE=1, a test during which the validation layer says
 * anything has failed, and so has a run in which it says anything at the end.
 */
import { afterAll, afterEach, expect } from "bun:test";
import { takeValidationMessages, validationRequested } from "../../src/vulkan/validation.ts";

if (validationRequested) {
  afterEach(() => {
    expect(takeValidationMessages()).toBe("");
  });

  // Closing the device shows what was never freed.
  afterAll(async () => {
    const { closeTestGpu } = await import("./gpu.ts");
    closeTestGpu();
    expect(takeValidationMessages()).toBe("");
  });
}
