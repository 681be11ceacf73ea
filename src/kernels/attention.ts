/** Attention of query rows over the paged cache. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { activationKind, codesIn, stepsIn, tileStepsIn } from "./activations.ts";
import { counterBytes, countersIn } from "./attention-counters.ts";
import { defineKernel, launch, reads, updates, writes, type KernelContext } from "./kernel.ts";
import { halfTypes, isScrambled, kvConstants, type KvType, type KvTypes } from "./kv-type.ts";
import { flashAttention, suitsFlash } from "./flash-attention.ts";
import { halve } from "./halve.ts";
import { quantize } from "./quantize.ts";
import { teamOf, type Team } from "./reduction.ts";
import { rotationConstants, type RotatedHeads } from "./rope-cache.ts";
import { unscramble } from "./unscramble.ts";

export const attentionKernel = defineKernel("attention", {
  query: reads,
  keyCache: updates,
  valueCache: updates,
  result: writes,
  steps: writes,
  parts: updates,
  counters: updates,
  step: reads,
  sinks: reads,
  key: reads,
  value: reads,
  frequencies: reads,
  queryNorm: reads,
  keyNorm: reads,
  kvHeads: u32,
  window: u32,
  scale: f32,
  cap: f32,
});

export interface AttentionShape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  /** `headWidth` by default. */
  readonly valueWidth?: number | undefined;
}

export interface Attention extends AttentionShape {
  /**
   * [rowCapacity, heads, headWidth], rotated (and scrambled, if keys are) unless there is `rope`;
   * with `gated` each head is followed by its gate.
   */
  readonly query: BufferSlice;
  /** Rotate queries on the way, and rotate and store keys and values; for one row. */
  readonly rope?: Omit<RotatedHeads, "query"> | undefined;
  readonly keyCache: BufferSlice;
  readonly valueCache: BufferSlice;
  /** What the caches hold; halves by default. */
  readonly kvTypes?: KvTypes | undefined;
  /** [rowCapacity, heads, valueWidth], written as `reader` will read it. */
  readonly result: BufferSlice;
  /** The matrix that the result goes through. */
  readonly reader: Matrix;
  /** Scratch of `attentionFloats` floats a row. */
  readonly workspace: BufferSlice;
  /** Zeroed scratch of `attentionPartBytes`. */
  readonly parts: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
  readonly deterministic: boolean;
  readonly scale: number;
  /** Multiply the result with the sigmoid of the gate that stands behind each query head. */
  readonly gated?: boolean | undefined;
  /** Scores become cap · tanh(score / cap). */
  readonly cap?: number | undefined;
  /** [heads]: scores that take their share of the weights and have no value. */
  readonly sinks?: Vector | undefined;
  /** Keys that a query sees, itself included; all by default. */
  readonly window?: number | undefined;
  /** Workgroups that share the keys of a row and head; `attentionSplits` by default. */
  readonly splits?: number;
  /** Teams of invocations in a workgroup; as many as have room by default. */
  readonly teams?: number;
  /** Loads that an invocation has on their way at the same time, at most. */
  readonly loads?: number;
}

type Rope = NonNullable<Attention["rope"]>;

/** What the kernel can leave behind. */
const resultNumbers = { float: 0, int8: 1, tile: 2 } as const;
type ResultKind = keyof typeof resultNumbers;

/** Workgroups that fill a large GPU, one for each multiprocessor or two. */
const workgroupsWanted = 256;
/** Quads of sums in each invocation. */
const laneQuadsMax = 4;
/** Of what the teams of a workgroup found. */
const sharedBytesMax = 16 << 10;

/** Floats of workspace a row. */
export function attentionFloats({
  heads,
  headWidth,
  valueWidth = headWidth,
}: AttentionShape): number {
  return heads * valueWidth;
}

/** Few rows leave most of a GPU idle unless their keys are shared out; a processor never is. */
function attentionSplits(context: KernelContext, args: Attention): number {
  const { kvHeads, rowCapacity, deterministic } = args;
  if (deterministic || context.capabilities.kind === "cpu") return 1;
  const wanted = Math.max(1, Math.floor(workgroupsWanted / (kvHeads * rowCapacity)));
  return Math.min(wanted, teamOf(context).lanes);
}

/** Bytes of the scratch for unfinished results and, at its end, for counting who has finished. */
export function attentionPartBytes(shapes: readonly AttentionShape[]): number {
  const most = (of: (shape: AttentionShape) => number) => Math.max(0, ...shapes.map(of));
  const floats = ({ heads, kvHeads, headWidth, valueWidth = headWidth }: AttentionShape) =>
    workgroupsWanted * (heads / kvHeads) * partFloats(valueWidth);
  return most(floats) * 4 + most((shape) => counterBytes(shape.heads));
}

/** Maximum and total of the weights, padded, then the weighted sum. */
function partFloats(valueWidth: number): number {
  return valueWidth + 4;
}

export function attention(context: KernelContext, args: Attention): void {
  const { heads, headWidth, valueWidth = headWidth, reader: w, rowCapacity, deterministic } = args;
  const kind = activationKind(context, { w, rowCapacity, deterministic });
  const { result, workspace, step } = args;
  const width = heads * valueWidth;
  const floats = subslice(workspace, 0, rowCapacity * width * 4);
  const rows = { width, step, rowCapacity };
  if (kind !== "int8" && suitsFlash(context, args)) {
    const { kvTypes = halfTypes, gated = false, query: gates } = args;
    const x = kind === "tile" ? floats : result;
    const rest = subslice(workspace, floats.byteSize, workspace.byteSize - floats.byteSize);
    flashAttention(context, { ...args, result: x, workspace: rest });
    if (isScrambled(kvTypes.value)) {
      unscramble(context, { ...args, x, gates: gated ? gates : undefined });
    }
    if (kind !== "float") halve(context, { x, y: result, tiled: kind === "tile", ...rows });
    return;
  }
  // Blocks of codes must not straddle heads, which different workgroups compute.
  if (kind === "int8" && valueWidth % 32 !== 0) {
    attend(context, { ...args, result: floats }, "float");
    quantize(context, { x: floats, y: result, ...rows });
    return;
  }
  attend(context, args, kind === "half" ? "float" : kind);
  if (kind === "half") halve(context, { x: result, y: result, ...rows });
}

function attend(context: KernelContext, args: Attention, kind: ResultKind): void {
  const { query, keyCache, valueCache, parts, step, rowCapacity, heads, kvHeads, headWidth } = args;
  const { valueWidth = headWidth, scale, cap, sinks, window = 0xffff_ffff, gated = false } = args;
  const { rope, splits = attentionSplits(context, args), loads = defaultLoads(context) } = args;
  const { kvTypes = halfTypes } = args;
  invariant(heads % kvHeads === 0, `attention: ${heads} heads, ${kvHeads} key/value heads`);
  invariant(headWidth % 8 === 0 && valueWidth % 4 === 0, `attention: ${headWidth}, ${valueWidth}`);
  invariant(rope === undefined || rowCapacity === 1, `attention: rope of ${rowCapacity} rows`);
  invariant(rope?.temperature === undefined, "attention: rope with a temperature");
  invariant(sinks === undefined || sinks.length === heads, `attention: ${sinks?.name}`);
  const group = groupSize(context, args);
  const partBytes = rowCapacity * heads * splits * partFloats(valueWidth) * 4;
  const counters = counterBytes(heads);
  const team = teamOf(context);
  invariant(splits <= team.lanes, `attention: ${splits} splits of ${team.lanes}`);
  invariant(splits === 1 || parts.byteSize >= partBytes + counters, `attention: ${splits} splits`);
  launch(context, attentionKernel, {
    shader: `attention.${team.reduction}`,
    constants: [
      team.lanes * (args.teams ?? teamCount(context, team, group, valueWidth)),
      team.lanes,
      headWidth,
      valueWidth,
      group,
      splits,
      Number(cap !== undefined),
      Number(sinks !== undefined),
      Number(gated),
      resultNumbers[kind],
      sideCount(team.lanes, valueWidth),
      keyLoads(kvTypes.key, headWidth, loads),
      kvTypes.value === "f16" ? loads : ceilDiv(loads, 2),
      Number(rope?.key !== undefined),
      ...rotationConstants(rope ?? { rotary: 0, pairs: "halves" }),
      heads / kvHeads / group,
      ...kvConstants(kvTypes),
      ...(rope && isScrambled(kvTypes.key) ? [1] : []),
    ],
    subgroupSize: team.subgroupSize,
    parameters: {
      query,
      keyCache,
      valueCache,
      ...resultOf(args, kind),
      step,
      kvHeads,
      window,
      scale,
      cap: cap ?? 0,
      ...(sinks && { sinks: sinks.data }),
      ...(rope && ropeParameters(rope)),
      ...(splits > 1 && {
        parts: subslice(parts, 0, partBytes),
        counters: countersIn(parts, heads),
      }),
    },
    groups: [heads / group, rowCapacity, splits],
    label: "attention",
  });
}

function ropeParameters({ key, value = key, frequencies, queryNorm, keyNorm }: Rope) {
  return {
    ...(key && value && { key, value }),
    ...(frequencies && { frequencies }),
    ...(queryNorm && { queryNorm: queryNorm.data }),
    ...(keyNorm && { keyNorm: keyNorm.data }),
  };
}

function resultOf(args: Attention, kind: ResultKind) {
  const { result, rowCapacity, heads, headWidth, valueWidth = headWidth } = args;
  const width = heads * valueWidth;
  const shape = [result, rowCapacity, width] as const;
  if (kind === "int8") return { result: codesIn(...shape), steps: stepsIn(...shape) };
  return { result, ...(kind === "tile" && { steps: tileStepsIn(...shape) }) };
}

/** Query heads that a workgroup takes together, as far as their sums have room in registers. */
function groupSize(context: KernelContext, args: Attention): number {
  const { heads, kvHeads, headWidth, valueWidth = headWidth } = args;
  const laneQuads = ceilDiv(valueWidth / 4, teamOf(context).lanes);
  const sharing = heads / kvHeads;
  let group = sharing;
  while (group > 1 && (sharing % group !== 0 || group * laneQuads > laneQuadsMax)) group--;
  return group;
}

/** Teams that share a workgroup's keys; each needs room for what it finds. */
function teamCount(context: KernelContext, team: Team, group: number, valueWidth: number): number {
  if (team.reduction === "shared" || context.capabilities.kind === "cpu") return 1;
  const fitting = Math.floor(sharedBytesMax / (group * valueWidth * 4));
  return [8, 4, 2].find((count) => count <= fitting) ?? 1;
}

/** Keys that a team sums side by side, where a value is narrower than the team. */
function sideCount(lanes: number, valueWidth: number): number {
  const quads = valueWidth / 4;
  return lanes > quads && lanes % quads === 0 ? lanes / quads : 1;
}

/**
 * Of 16 bytes of a key, or of its chunks of codes; they divide the head. What has to be decoded is
 * less in bytes, and more code for each.
 */
function keyLoads(type: KvType, headWidth: number, loads: number): number {
  const isCoded = type !== "f16";
  const count = isCoded ? ceilDiv(headWidth, 32) : headWidth / 8;
  const most = isCoded ? ceilDiv(loads, 8) : loads;
  return [16, 8, 5, 4, 3, 2].find((part) => part <= most && count % part === 0) ?? 1;
}

/** A processor has its caches, and its compilers take seconds for what is unrolled that far. */
function defaultLoads({ capabilities }: KernelContext): number {
  return capabilities.kind === "cpu" ? 1 : 16;
}
