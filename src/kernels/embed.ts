/** Token embeddings: rows of the table, dequantized. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { isComputable, type Matrix } from "../tensor/tensor.ts";
import { defineKernel, launch, matrix, reads, writes, type KernelContext } from "./kernel.ts";
import { unitValues } from "./unit-values.ts";

export const embedKernel = defineKernel("embed", {
  table: matrix,
  x: writes,
  step: reads,
  latest: reads,
  width: u32,
  scale: f32,
});

/** Each invocation reads one unit. */
const workgroup = 64;

export interface Embed {
  /** [vocabulary, width] */
  readonly table: Matrix;
  /** [rowCapacity, width], written. */
  readonly x: BufferSlice;
  readonly step: BufferSlice;
  /** [sequences]: the tokens of rows that have `latestToken`. */
  readonly latest?: BufferSlice | undefined;
  readonly rowCapacity: number;
  readonly scale?: number;
}

export function embed(
  context: KernelContext,
  { table, x, step, latest, rowCapacity, scale = 1 }: Embed,
): void {
  invariant(
    isComputable(table.dtype, table.columns),
    `embed: ${table.columns} columns of ${table.dtype}`,
  );
  invariant(x.byteSize >= rowCapacity * table.columns * 4, "embed: x is too small");
  launch(context, embedKernel, {
    shader: `embed.${table.dtype}`,
    constants: [workgroup],
    parameters: { table, x, step, ...(latest && { latest }), width: table.columns, scale },
    groups: [ceilDiv(table.columns / unitValues(table.dtype), workgroup), rowCapacity],
    label: "embed",
  });
}
