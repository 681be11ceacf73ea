/** `--profile`: where the time of the last step went, kernel by kernel. */
import type { Engine } from "../engine/engine.ts";
import { writeErr } from "./output.ts";

const linesMax = 30;

export function printProfile(engine: Engine): void {
  const lines = engine.profile();
  const total = lines.reduce((sum, { nanoseconds }) => sum + nanoseconds, 0);
  // Layers share their kernels' labels but for the number.
  const merged = new Map<string, { count: number; nanoseconds: number }>();
  for (const { label, pipeline, count, nanoseconds } of lines) {
    const key = `${label
      .replace(/blk\.\d+\./, "")
      .replace(/\.weight$/, "")
      .padEnd(20)} ${pipeline}`;
    const line = merged.get(key) ?? { count: 0, nanoseconds: 0 };
    merged.set(key, { count: line.count + count, nanoseconds: line.nanoseconds + nanoseconds });
  }
  const rows = [...merged]
    .toSorted(([, a], [, b]) => b.nanoseconds - a.nanoseconds)
    .slice(0, linesMax);
  writeErr(`last step: ${(total / 1e6).toFixed(3)} ms on the device, each kernel alone\n`);
  for (const [key, { count, nanoseconds }] of rows) {
    const share = `${((100 * nanoseconds) / total).toFixed(1)}%`.padStart(6);
    const time = (nanoseconds / 1e3).toFixed(1).padStart(10);
    writeErr(`${share} ${time} µs ${`${count}×`.padStart(5)} ${key}\n`);
  }
}
