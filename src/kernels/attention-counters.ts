/** Where workgroups that share the keys of some heads count who has finished. */
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";

/** Rows whose keys are shared, at most. */
const rowsMax = 512;

export function counterBytes(heads: number): number {
  return rowsMax * heads * 4;
}

/** The end of the scratch for unfinished results, zero between dispatches. */
export function countersIn(parts: BufferSlice, heads: number): BufferSlice {
  const bytes = counterBytes(heads);
  return subslice(parts, parts.byteSize - bytes, bytes);
}
