/** Attention of many query rows on matrix units. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { subslice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { countersIn } from "./attention-counters.ts";
import type { Attention } from "./attention.ts";
import { linearRowsMax } from "./activations.ts";
import { defineKernel, launch, reads, updates, writes, type KernelContext } from "./kernel.ts";
import { halfTypes, kvConstants } from "./kv-type.ts";
import { holdsManySums, matrixUnitsOf, type MatrixUnits } from "./matrix-units.ts";
import { blockTokens } from "./step.ts";

export const flashAttentionKernel = defineKernel("flash_attention", {
  query: reads,
  keyCache: reads,
  valueCache: reads,
  result: writes,
  step: reads,
  sinks: reads,
  shares: updates,
  counters: updates,
  kvHeads: u32,
  window: u32,
  scale: f32,
  cap: f32,
});

/** Rows from which whole tiles of queries are likely to be of one sequence. */
const rowsMin = 4 * linearRowsMax + 1;
const headWidthMax = 256;
/** They keep a large GPU busy; where tiles are fewer, workgroups share their keys. */
const workgroupsWanted = 128;
const splitsMax = 8;
/** The sums of a subgroup's queries lie in registers. */
const partWidthMax = 128;
const subgroupsMax = 4;

/** Whether the device and the shape are such that `flashAttention` can be chosen. */
export function suitsFlash(context: KernelContext, args: Attention): boolean {
  const { rowCapacity, deterministic } = args;
  const { capabilities } = context;
  if (rowCapacity < rowsMin || deterministic || capabilities.kind === "cpu") return false;
  const units = matrixUnitsOf(capabilities);
  return units !== undefined && subgroupCount(context, units, args) > 0;
}

export interface FlashTuning {
  /** Of a workgroup. */
  readonly subgroups: number;
  /** Workgroups that share the width of a value. */
  readonly parts: number;
  /** Workgroups that share the keys of a tile. */
  readonly splits: number;
}

/** Results of scrambled values stay scrambled, and without their gates: see `unscramble`. */
export function flashAttention(
  context: KernelContext,
  args: Attention,
  tuning: FlashTuning = defaultTuning(context, args),
): void {
  const { query, keyCache, valueCache, result, workspace, parts: counters, step } = args;
  const { heads, kvHeads } = args;
  const { headWidth, scale, cap, sinks, window = 0xffff_ffff, gated = false } = args;
  const { kvTypes = halfTypes } = args;
  const { subgroups, parts, splits } = tuning;
  const units = matrixUnitsOf(context.capabilities);
  const group = heads / kvHeads;
  invariant(units !== undefined && subgroups > 0, `attention: ${headWidth} on matrix units`);
  invariant(sinks === undefined || sinks.length === heads, `attention: ${sinks?.name}`);
  const shareBytes = shareBytesOf(args, units, tuning);
  invariant(splits === 1 || shareBytes <= workspace.byteSize, `attention: ${splits} splits`);
  launch(context, flashAttentionKernel, {
    shader: "flash_attention",
    constants: [
      subgroups * units.lanes,
      units.lanes,
      headWidth,
      group,
      Number(cap !== undefined),
      Number(sinks !== undefined),
      Number(gated),
      units.rows,
      units.columns,
      units.depth,
      parts,
      splits,
      ...kvConstants(kvTypes),
    ],
    subgroupSize: units.subgroupSize,
    parameters: {
      query,
      keyCache,
      valueCache,
      result,
      step,
      kvHeads,
      window,
      scale,
      cap: cap ?? 0,
      ...(sinks && { sinks: sinks.data }),
      ...(splits > 1 && {
        shares: subslice(workspace, 0, shareBytes),
        counters: countersIn(counters, heads),
      }),
    },
    groups: [kvHeads, tileCount(args, units, tuning) * splits, parts],
    label: "attention",
  });
}

function tileCount(
  { rowCapacity, heads, kvHeads }: Attention,
  units: MatrixUnits,
  { subgroups }: Pick<FlashTuning, "subgroups">,
): number {
  return ceilDiv(rowCapacity, Math.floor((subgroups * units.rows) / (heads / kvHeads)));
}

/** Weighted sums, maxima and totals of all workgroups, padded. */
function shareBytesOf(args: Attention, units: MatrixUnits, tuning: FlashTuning): number {
  const { subgroups, parts, splits } = tuning;
  const queries = tileCount(args, units, tuning) * subgroups * units.rows;
  return args.kvHeads * queries * parts * splits * (args.headWidth / parts + 4) * 4;
}

function defaultTuning(context: KernelContext, args: Attention): FlashTuning {
  const units = matrixUnitsOf(context.capabilities);
  const subgroups = subgroupCount(context, units, args);
  const isWhole = args.headWidth <= partWidthMax || holdsManySums(context.capabilities);
  const layout = { subgroups, parts: isWhole ? 1 : 2 };
  if (units === undefined) return { ...layout, splits: 1 };
  const workgroups = args.kvHeads * tileCount(args, units, layout) * layout.parts;
  let splits = 1;
  while (
    splits < splitsMax &&
    workgroups * splits < workgroupsWanted &&
    shareBytesOf(args, units, { ...layout, splits: 2 * splits }) <= args.workspace.byteSize
  ) {
    splits *= 2;
  }
  return { ...layout, splits };
}

/** Subgroups that have room and hold all heads of a row; 0 if there is no such number. */
function subgroupCount(
  { capabilities }: KernelContext,
  units: MatrixUnits | undefined,
  { heads, kvHeads, headWidth, valueWidth = headWidth }: Attention,
): number {
  if (units === undefined || units.lanes % units.rows !== 0) return 0;
  const step = headWidth > partWidthMax ? 32 : 16;
  if (valueWidth !== headWidth || headWidth % step !== 0 || headWidth > headWidthMax) return 0;
  for (let count = subgroupsMax; count * units.rows >= heads / kvHeads; count /= 2) {
    if (sharedBytes(units, headWidth, count) <= capabilities.limits.sharedMemoryBytes) return count;
  }
  return 0;
}

/** Queries, a block of keys or values, weights, and scores. */
function sharedBytes({ rows, columns }: MatrixUnits, headWidth: number, subgroups: number): number {
  const queries = subgroups * rows;
  const halves = (queries + blockTokens) * (headWidth + 8) + queries * (blockTokens + 8);
  return halves * 2 + queries * Math.max(blockTokens, columns) * 4;
}
