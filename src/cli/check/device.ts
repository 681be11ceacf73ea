/**
 * The chosen device: what it can do, what it has free, how fast it reads, and whether every shader
 * compiles.
 */
import { nextTurn } from "../../engine/turn.ts";
import { measureReadBandwidth } from "../../kernels/bandwidth.ts";
import { verify, verifyCases } from "../../kernels/verify/verify.ts";
import { formatBytes } from "../../math.ts";
import { hostVisibleDeviceBytes, type Capabilities } from "../../vulkan/capabilities.ts";
import type { Gpu } from "../../vulkan/gpu.ts";
import { localBytes } from "../../vulkan/selection.ts";
import { Progress } from "../progress.ts";
import { failure, ok, skipped, warning, type CheckResult } from "./result.ts";

export function checkKind({ name, kind, driver, apiVersion }: Capabilities): CheckResult {
  const detail = `${name}, ${kind}, ${driver.name} ${driver.info}, Vulkan ${apiVersion.join(".")}`;
  return kind === "cpu"
    ? warning(
        "device",
        `${detail}: this is the processor; install your GPU's driver to use the GPU`,
      )
    : ok("device", detail);
}

/** Reported as found: which GPUs should have them is not ours to tell from a name. */
export function checkMatrixUnits({ cooperativeMatrices, extensions }: Capabilities): CheckResult {
  const shapes = cooperativeMatrices.map(
    ({ m, n, k, operands, accumulator }) => `${m}×${n}×${k} ${operands}→${accumulator}`,
  );
  if (shapes.length > 0) return ok("matrix units", shapes.slice(0, 6).join(", "));
  const hidden = extensions.has("VK_KHR_cooperative_matrix");
  return skipped(
    "matrix units",
    hidden
      ? "the driver knows VK_KHR_cooperative_matrix and offers no shape"
      : "the driver does not offer VK_KHR_cooperative_matrix; newer ones may",
  );
}

export function checkResizableBar(capabilities: Capabilities): CheckResult {
  const visible = hostVisibleDeviceBytes(capabilities);
  const all = localBytes(capabilities);
  if (capabilities.kind !== "discrete")
    return skipped("resizable BAR", "only discrete GPUs have one");
  return visible * 2 >= all
    ? ok("resizable BAR", `${formatBytes(visible)} of device memory are open to the host`)
    : ok(
        "resizable BAR",
        `off: ${formatBytes(visible)} of ${formatBytes(all)} are open to the host; ` +
          "zinc does not need it",
      );
}

export function checkMemory(gpu: Gpu): CheckResult {
  const heaps = gpu.device.budget().filter(({ deviceLocal }) => deviceLocal);
  const [largest] = heaps.toSorted((a, b) => b.byteSize - a.byteSize);
  if (largest === undefined) return failure("memory", "the device reports no memory of its own");
  const detail = `${formatBytes(largest.freeBytes)} of ${formatBytes(largest.byteSize)} free`;
  return largest.freeBytes < largest.byteSize / 4
    ? warning("memory", `${detail}: other programs hold most of it; close some for larger models`)
    : ok("memory", detail);
}

export function checkBandwidth(gpu: Gpu): { result: CheckResult; readGBs: number } {
  const readGBs = measureReadBandwidth(gpu) / 1e9;
  return { result: ok("bandwidth", `reads ${readGBs.toFixed(1)} GB/s`), readGBs };
}

/**
 * Each kernel and type once, in the variant that this device gets. Tiles are never used on a
 * processor, and its driver needs two minutes to compile them: they are left to `zinc verify`.
 */
export async function checkKernels(gpu: Gpu): Promise<CheckResult> {
  using progress = new Progress("kernels");
  const hasTiles = gpu.device.capabilities.kind !== "cpu";
  const seen = new Set<string>();
  const cases = verifyCases.filter(({ kernel, variant }) => {
    const key = `${kernel} ${variant}`;
    if (variant.endsWith("shared") || (kernel === "matmul" && !hasTiles)) return false;
    return !seen.has(key) && seen.add(key);
  });
  const wrong: string[] = [];
  for (const [i, verifyCase] of cases.entries()) {
    progress.step(i + 1, cases.length, `${verifyCase.kernel} ${verifyCase.variant}`);
    await nextTurn();
    try {
      if (verify(gpu, verifyCase).status === "fail")
        wrong.push(`${verifyCase.kernel} ${verifyCase.variant}`);
    } catch (error) {
      const reason = error instanceof Error ? error.message : error;
      wrong.push(`${verifyCase.kernel} ${verifyCase.variant} (${reason})`);
    }
  }
  return wrong.length === 0
    ? ok("kernels", `${cases.length} compile and compute as they should`)
    : failure(
        "kernels",
        `${wrong.length} of ${cases.length} are wrong on this driver: ` +
          `${wrong.slice(0, 5).join(", ")}; update the driver, and run zinc verify for the details`,
      );
}
