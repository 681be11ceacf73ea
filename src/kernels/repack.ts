/** Quantized blocks as they stand in a file → aligned planes (`tensor/planes.ts`). */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { blockFormats, type DType } from "../tensor/dtype.ts";
import { planeFields } from "../tensor/planes.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";

export const repackKernel = defineKernel("repack", {
  source: reads,
  target: writes,
  blockBytes: u32,
  fieldOffset: u32,
  fieldBytes: u32,
  targetBytes: u32,
  groupsX: u32,
});

const workgroup = 64;
const groupsXMax = 32768;

/**
 * Part boundaries must fall on whole words of every plane, of which the narrowest has one byte a
 * block.
 */
export const repackBlockStep = 16;

export interface Repack {
  readonly dtype: DType;
  /** Whole blocks as in the file. */
  readonly source: BufferSlice;
  /** The planes of the whole tensor. */
  readonly planes: readonly BufferSlice[];
  /** The block of the tensor at which `source` starts. */
  readonly firstBlock: number;
}

export function repack(
  context: KernelContext,
  { dtype, source, planes, firstBlock }: Repack,
): void {
  const { blockBytes } = blockFormats[dtype];
  const blockCount = source.byteSize / blockBytes;
  invariant(
    Number.isInteger(blockCount) && firstBlock % repackBlockStep === 0,
    `repack ${dtype}: uneven part`,
  );
  planeFields(dtype).forEach((field, i) => {
    const plane = planes[i];
    invariant(plane !== undefined, `repack ${dtype}: plane ${i}`);
    const target = subslice(plane, firstBlock * field.byteSize, blockCount * field.byteSize);
    if (field.byteSize === blockBytes) {
      context.program.copy(source, target);
      return;
    }
    const groups = ceilDiv(ceilDiv(target.byteSize, 4), workgroup);
    const groupsX = Math.min(groups, groupsXMax);
    launch(context, repackKernel, {
      shader: "repack",
      constants: [workgroup],
      parameters: {
        source,
        target,
        blockBytes,
        fieldOffset: field.offset,
        fieldBytes: field.byteSize,
        targetBytes: target.byteSize,
        groupsX,
      },
      groups: [groupsX, ceilDiv(groups, groupsX)],
      label: `repack ${dtype}`,
    });
  });
}
