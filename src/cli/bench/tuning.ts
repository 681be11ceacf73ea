/** What `zinc bench --tune` says of the layouts of kernels that were measured. */
import type { Engine } from "../../engine/engine.ts";

export type TuningRow = ReturnType<typeof tuningRows>[number];

export function tuningRows({ tuning, gpus }: Engine) {
  return tuning.map(({ deviceName, shape, usual, chosen, speedup }) => ({
    ...(gpus.length > 1 && { device: deviceName }),
    shape,
    default: usual,
    chosen,
    speedup,
  }));
}

/** A table of what won, and a line on what did not change. */
export function formatTuning(rows: readonly TuningRow[]): string[] {
  const changed = rows.filter(({ speedup }) => speedup > 1);
  const widthOf = (cells: readonly string[]) => Math.max(0, ...cells.map(({ length }) => length));
  const shapeWidth = widthOf(changed.map(({ shape }) => shape));
  const gainWidth = widthOf(changed.map(gainOf));
  return [
    `kernels tuned: ${changed.length} of ${rows.length} shapes gain by another layout`,
    ...changed.map((row) => {
      const gain = gainOf(row).padStart(gainWidth);
      return `  ${row.shape.padEnd(shapeWidth)}  ${gain}  ${changesIn(row)}`;
    }),
  ];
}

/** "+12.5%" */
function gainOf({ speedup }: TuningRow): string {
  return `+${((speedup - 1) * 100).toFixed(1)}%`;
}

/** "rows 2 → 4, split 4 → 2" */
function changesIn({ default: usual, chosen }: TuningRow): string {
  const before = new Map<string, unknown>(Object.entries(usual));
  return Object.entries(chosen)
    .filter(([name, value]) => before.get(name) !== value)
    .map(([name, value]) => `${name} ${before.get(name)} → ${value}`)
    .join(", ");
}
