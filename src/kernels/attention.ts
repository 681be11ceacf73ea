/** Attention of query rows over the paged cache. */
import { invariant } from "../errors.ts";
import type { Matrix } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { activationKind } from "./activations.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";
import { quantize } from "./quantize.ts";
import { teamOf } from "./reduction.ts";

export const attentionKernel = defineKernel("attention", {
  query: reads,
  keyCache: reads,
  valueCache: reads,
  result: writes,
  parts: writes,
  step: reads,
  kvHeads: u32,
  window: u32,
  scale: f32,
});

export const attentionMergeKernel = defineKernel("attention_merge", {
  parts: reads,
  result: writes,
  step: reads,
  heads: u32,
});

/** Maximum and total of the weights stand before each unfinished result. */
const partHeader = 2;

export interface Attention {
  /** [rowCapacity, heads, headWidth], rotated. */
  readonly query: BufferSlice;
  readonly keyCache: BufferSlice;
  readonly valueCache: BufferSlice;
  /** [rowCapacity, heads, headWidth], written as `reader` will read it. */
  readonly result: BufferSlice;
  /** The matrix that the result goes through. */
  readonly reader: Matrix;
  /** Scratch of `attentionFloats` floats a row. */
  readonly workspace: BufferSlice;
  readonly deterministic: boolean;
  /** Scratch of `attentionPartBytes`, needed if `splits` > 1. */
  readonly parts?: BufferSlice | undefined;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  readonly scale: number;
  /** Keys that a query sees, itself included; all by default. */
  readonly window?: number;
  /** Workgroups that share the keys of a row and head. */
  readonly splits: number;
}

/** Bytes of the scratch buffer for unfinished results. */
export function attentionPartBytes(
  rows: number,
  heads: number,
  headWidth: number,
  splits: number,
): number {
  return splits === 1 ? 0 : rows * heads * splits * (headWidth + partHeader) * 4;
}

/** Floats of workspace a row. */
export function attentionFloats(heads: number, headWidth: number): number {
  return heads * headWidth;
}

export function attention(context: KernelContext, args: Attention): void {
  const { reader: w, rowCapacity, deterministic, heads, headWidth, workspace, step } = args;
  if (activationKind(context, { w, rowCapacity, deterministic }) === "float") {
    attend(context, args);
    return;
  }
  const width = heads * headWidth;
  const floats = subslice(workspace, 0, rowCapacity * width * 4);
  attend(context, { ...args, result: floats });
  quantize(context, { x: floats, y: args.result, width, step, rowCapacity });
}

function attend(context: KernelContext, args: Attention): void {
  const { query, keyCache, valueCache, result, parts, step, rowCapacity, heads, kvHeads } = args;
  const { headWidth, scale, window = 0xffff_ffff, splits } = args;
  invariant(heads % kvHeads === 0, `attention: ${heads} heads, ${kvHeads} key/value heads`);
  invariant(headWidth % 8 === 0, `attention: head width ${headWidth}`);
  const partBytes = attentionPartBytes(rowCapacity, heads, headWidth, splits);
  invariant(
    splits === 1 || (parts !== undefined && parts.byteSize >= partBytes),
    "attention: parts",
  );
  const { reduction, lanes, subgroupSize } = teamOf(context);
  launch(context, attentionKernel, {
    shader: `attention.${reduction}`,
    constants: [lanes, headWidth, heads / kvHeads, splits],
    subgroupSize,
    parameters: {
      query,
      keyCache,
      valueCache,
      result,
      step,
      kvHeads,
      window,
      scale,
      ...(parts === undefined ? {} : { parts }),
    },
    groups: [kvHeads, rowCapacity, splits],
    label: "attention",
  });
  if (splits === 1 || parts === undefined) return;
  launch(context, attentionMergeKernel, {
    shader: "attention_merge",
    constants: [Math.min(headWidth, 64), headWidth, 0, splits],
    parameters: { parts, result, step, heads },
    groups: [heads, rowCapacity],
    label: "attention merge",
  });
}
