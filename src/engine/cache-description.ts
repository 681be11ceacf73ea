/** What the cache of a plan keeps, in words. */
import { kvTypesName } from "../kernels/kv-type.ts";
import { formatBytes } from "../math.ts";
import type { MemoryPlan } from "./plan.ts";

/** "tq4 with 1.09 kB a token (27 % of f16)": what the cache keeps, and what that saves. */
export function describeCache(plan: MemoryPlan): string {
  const { kvTypes, cacheBytesPerToken: bytes, halfBytesPerToken: half } = plan;
  const saved = bytes < half ? ` (${Math.round((100 * bytes) / half)} % of f16)` : "";
  return `${kvTypesName(kvTypes)} with ${formatBytes(bytes)} a token${saved}`;
}
