/** Step buffers for kernels that are tried alone. */
import type { BufferSlice } from "../../vulkan/buffer.ts";
import { stepBytes, writeBlockTable, writeStep, type StepRow, type StepShape } from "../step.ts";
import type { Workbench } from "./workbench.ts";

/** A step with these rows; block tables by sequence. */
export function uploadStep(
  bench: Workbench,
  rows: readonly StepRow[],
  options: {
    capacity?: number;
    outputs?: readonly number[];
    tables?: readonly (readonly number[])[];
  } = {},
): BufferSlice {
  const { capacity = rows.length, outputs = [], tables = [] } = options;
  const shape: StepShape = {
    rowCapacity: capacity,
    sequenceCapacity: tables.length,
    tableStride: Math.max(1, ...tables.map((table) => table.length)),
  };
  const words = new Uint32Array(stepBytes(shape) / 4);
  writeStep(words, shape, rows, outputs);
  tables.forEach((table, sequence) => writeBlockTable(words, shape, sequence, table));
  return bench.upload(words);
}

/** `count` rows of which nothing but the number matters. */
export function plainRows(count: number): StepRow[] {
  return Array.from({ length: count }, (_, i) => ({ token: 0, position: i, sequence: 0 }));
}
