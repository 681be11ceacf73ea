/** What `zinc bench --tune` prints of races. */
import { expect, test } from "bun:test";
import { formatTuning } from "../../src/cli/bench/tuning.ts";

const usual = { lanes: 32, rows: 2, columns: 1, subgroups: 4, passes: 1, split: 4 };

test("a line says how many shapes gain, and a table what changes for them", () => {
  const rows = [
    { shape: "linear Q4_K 4096x4096", chosen: { ...usual, rows: 4, split: 2 }, speedup: 1.125 },
    { shape: "linear Q6_K 1024x4096", chosen: usual, speedup: 1 },
    { shape: "linear F16 64x64", chosen: { ...usual, passes: 2 }, speedup: 1.0345 },
  ].map((row) => ({ ...row, default: usual }));
  expect(formatTuning(rows)).toEqual([
    "kernels tuned: 2 of 3 shapes gain by another layout",
    "  linear Q4_K 4096x4096  +12.5%  rows 2 → 4, split 4 → 2",
    "  linear F16 64x64        +3.4%  passes 1 → 2",
  ]);
});

test("nothing that gains is one line", () => {
  const row = { shape: "linear F16 64x64", default: usual, chosen: usual, speedup: 1 };
  expect(formatTuning([row])).toEqual(["kernels tuned: 0 of 1 shapes gain by another layout"]);
});
