/** Activations as codes with steps, back to the values that they stand for. */
import type { BufferSlice } from "../../vulkan/buffer.ts";
import { codesIn, stepsIn } from "../activations.ts";
import type { Workbench } from "./workbench.ts";

/** The values that int8 activations stand for, [rows, width]. */
export function readCodes(
  bench: Workbench,
  y: BufferSlice,
  capacity: number,
  rows: number,
  width: number,
) {
  const codes = new Int8Array(bench.read(codesIn(y, capacity, width)).buffer);
  const steps = bench.read(stepsIn(y, capacity, width));
  const values = Float32Array.from(
    codes.subarray(0, rows * width),
    (code, i) => code * (steps[2 * Math.floor(i / 16)] ?? Number.NaN),
  );
  // The sums of runs must be what the codes add up to.
  for (let run = 0; run < (rows * width) / 16; run++) {
    const sum = values.subarray(16 * run, 16 * run + 16).reduce((total, value) => total + value, 0);
    const stored = steps[2 * run + 1] ?? Number.NaN;
    if (!(Math.abs(stored - sum) <= 1e-4 * Math.abs(steps[2 * run] ?? 0) * 127))
      values[16 * run] = Number.NaN;
  }
  return values;
}
