/** Attention of query rows over the paged cache. */
import { invariant } from "../errors.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";
import { teamOf } from "./reduction.ts";

export const attentionKernel = defineKernel("attention", {
  query: reads,
  keyCache: reads,
  valueCache: reads,
  result: writes,
  parts: writes,
  step: reads,
  sinks: reads,
  kvHeads: u32,
  window: u32,
  scale: f32,
  cap: f32,
});

export const attentionMergeKernel = defineKernel("attention_merge", {
  parts: reads,
  result: writes,
  step: reads,
  sinks: reads,
  heads: u32,
});

/** Maximum and total of the weights stand before each unfinished result. */
const partHeader = 2;

export interface Attention {
  /** [rowCapacity, heads, headWidth], rotated. */
  readonly query: BufferSlice;
  readonly keyCache: BufferSlice;
  readonly valueCache: BufferSlice;
  /** [rowCapacity, heads, valueWidth], written. */
  readonly result: BufferSlice;
  /** Scratch of `attentionPartBytes`, needed if `splits` > 1. */
  readonly parts?: BufferSlice | undefined;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  /** `headWidth` by default. */
  readonly valueWidth?: number;
  readonly scale: number;
  /** Scores become cap · tanh(score / cap). */
  readonly cap?: number | undefined;
  /** [heads]: scores that take their share of the weights and have no value. */
  readonly sinks?: Vector | undefined;
  /** Keys that a query sees, itself included; all by default. */
  readonly window?: number | undefined;
  /** Workgroups that share the keys of a row and head. */
  readonly splits: number;
}

/** Bytes of the scratch buffer for unfinished results. */
export function attentionPartBytes(
  rows: number,
  heads: number,
  valueWidth: number,
  splits: number,
): number {
  return splits === 1 ? 0 : rows * heads * splits * (valueWidth + partHeader) * 4;
}

export function attention(context: KernelContext, args: Attention): void {
  const { query, keyCache, valueCache, result, parts, step, rowCapacity, heads, kvHeads } = args;
  const { headWidth, valueWidth = headWidth, scale, window = 0xffff_ffff, splits } = args;
  const { cap, sinks } = args;
  invariant(heads % kvHeads === 0, `attention: ${heads} heads, ${kvHeads} key/value heads`);
  invariant(headWidth % 8 === 0, `attention: head width ${headWidth}`);
  invariant(valueWidth % 2 === 0, `attention: value width ${valueWidth}`);
  invariant(sinks === undefined || sinks.length === heads, `attention: ${sinks?.name}`);
  const partBytes = attentionPartBytes(rowCapacity, heads, valueWidth, splits);
  invariant(
    splits === 1 || (parts !== undefined && parts.byteSize >= partBytes),
    "attention: parts",
  );
  const { reduction, lanes, subgroupSize } = teamOf(context);
  const [isCapped, hasSinks] = [Number(cap !== undefined), Number(sinks !== undefined)];
  const sinkData = sinks === undefined ? {} : { sinks: sinks.data };
  launch(context, attentionKernel, {
    shader: `attention.${reduction}`,
    constants: [lanes, headWidth, heads / kvHeads, splits, valueWidth, isCapped, hasSinks],
    subgroupSize,
    parameters: {
      query,
      keyCache,
      valueCache,
      result,
      step,
      ...sinkData,
      kvHeads,
      window,
      scale,
      cap: cap ?? 0,
      ...(parts === undefined ? {} : { parts }),
    },
    groups: [kvHeads, rowCapacity, splits],
    label: "attention",
  });
  if (splits === 1 || parts === undefined) return;
  launch(context, attentionMergeKernel, {
    shader: "attention_merge",
    constants: [Math.min(valueWidth, 64), valueWidth, hasSinks, splits],
    parameters: { parts, result, step, ...sinkData, heads },
    groups: [heads, rowCapacity],
    label: "attention merge",
  });
}
