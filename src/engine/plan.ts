/**
 * What a model will need on a device, before anything is allocated: yes, yes with a shorter
 * context, or no.
 */
import { UserError } from "../errors.ts";
import { attentionPartBytes } from "../kernels/attention.ts";
import { halfTypes, kvHeadBytes, kvTypesName, type KvTypes } from "../kernels/kv-type.ts";
import { sampleScratchBytes } from "../kernels/sample.ts";
import { blockTokens } from "../kernels/step.ts";
import { ceilDiv, formatBytes, product, roundUp } from "../math.ts";
import type { Model } from "../model/model.ts";
import { weightPieces } from "../model/weights.ts";
import type { Device } from "../vulkan/device.ts";
import { freeDeviceBytes, planPacking, sliceAlignment, type Piece } from "../vulkan/memory.ts";

export interface MemoryPlan {
  readonly weightBytes: number;
  readonly kvTypes: KvTypes;
  readonly cacheBytesPerToken: number;
  /** What that would be of halves. */
  readonly halfBytesPerToken: number;
  /** Of one text. */
  readonly contextTokens: number;
  /** Of all texts together. */
  readonly cacheTokens: number;
  readonly cacheBytes: number;
  /** Of recurrent layers, which hold state and no keys and values: all of it. */
  readonly stateBytes: number;
  readonly stateBytesPerSequence: number;
  readonly activationBytes: number;
  readonly totalBytes: number;
  /** What the device had free, less the margin. */
  readonly freeBytes: number;
  /** Rows of a prefill chunk that the activations have room for. */
  readonly rowCapacity: number;
  /** Rows whose logits can be had from one step. */
  readonly outputCapacity: number;
  /** Sequences that have a block table and state. */
  readonly sequenceCapacity: number;
  /** Copies of a sequence's state that can be kept; undefined if the model has no such state. */
  readonly checkpointCapacity: number | undefined;
}

export interface PlanWishes {
  /** Of one text; the longest that fits by default, up to the model's own. */
  readonly contextTokens?: number | undefined;
  /** Of all texts together; a context, or so much that all have a moderate one, if that fits. */
  readonly cacheTokens?: number | undefined;
  /** What the cache keeps keys and values as; halves by default. */
  readonly kvTypes?: KvTypes | undefined;
  /** Texts that are made side by side, at most; 1 by default. */
  readonly parallel?: number | undefined;
  /** States that are kept for texts that begin alike, at most. */
  readonly checkpoints?: number | undefined;
}

/** Left to the desktop and to other programs: what users of other engines found enough. */
const marginBytes = 512 << 20;
const rowsMax = 512;
/** Two for each sequence, at the ends of prompt and answer, and some for what they share. */
const checkpointsBeside = 6;
/** Of the cache for each of several texts, where there is room. */
const tokensPerSequence = 8192;
/** Part of the free memory that recurrent state may take beyond that of one sequence. */
const stateShare = 0.25;
/** Logits of many positions at once are for perplexity alone. */
const logitsBytesMax = 64 << 20;
/** Logits of several positions at once, however large the vocabulary. */
const outputsMin = 8;
/** The shortest context that is of any use. */
const contextTokensMin = 256;

/** Throws a "memory" error with the numbers if not even one text fits. */
export function planMemory(device: Device, model: Model, wishes: PlanWishes = {}): MemoryPlan {
  const { config } = model;
  const { contextTokens, parallel = 1, kvTypes = halfTypes } = wishes;
  if (contextTokens !== undefined && contextTokens > config.contextLength) {
    throw new UserError(
      "usage",
      `a context of ${contextTokens} tokens is more than ${config.name} was made for`,
      `choose -c up to ${config.contextLength}`,
    );
  }
  const { capabilities } = device;
  const weights = planPacking(capabilities, weightPieces(model.weights.declared()));
  const weightBytes = weights.blocks.reduce((sum, byteSize) => sum + byteSize, 0);
  const freeBytes = freeDeviceBytes(device, capabilities.kind === "cpu" ? 0 : marginBytes);
  const outputCapacity = outputCapacityOf(model, parallel);
  const activationBytes = piecesBytes(activationPieces(model, rowsMax, outputCapacity));
  const states = planStates(model, wishes, freeBytes - weightBytes - activationBytes);
  const { stateBytes } = states;
  const perToken = cacheBytesPerToken(model, kvTypes);
  const roomBytes = freeBytes - weightBytes - activationBytes - stateBytes;
  const fitting = fittingTokens(model, perToken, roomBytes);
  const wanted = contextTokens ?? Math.min(config.contextLength, Math.max(fitting, 0));
  const granted = roundUp(wanted, blockTokens);
  const least = Math.min(contextTokensMin, config.contextLength);
  if (granted > fitting || (contextTokens === undefined && wanted < least)) {
    throw doesNotFit(model, device, {
      weightBytes,
      activationBytes,
      stateBytes,
      perToken,
      freeBytes,
      fitting,
      wanted,
    });
  }
  const shared = Math.min(wanted, tokensPerSequence) * states.sequenceCapacity;
  const tokens = roundUp(wishes.cacheTokens ?? shared, blockTokens);
  const cacheTokens = Math.max(granted, Math.min(tokens, fitting));
  const cacheBytes = piecesBytes(cachePieces(model, cacheTokens, kvTypes));
  return {
    weightBytes,
    activationBytes,
    cacheBytes,
    freeBytes,
    kvTypes,
    cacheBytesPerToken: perToken,
    halfBytesPerToken: cacheBytesPerToken(model),
    contextTokens: wanted,
    cacheTokens,
    totalBytes: weightBytes + activationBytes + cacheBytes + stateBytes,
    rowCapacity: rowsMax,
    outputCapacity,
    ...states,
  };
}

/** State for as many sequences as are wished for, or as its share of the memory has room for. */
function planStates(model: Model, { parallel = 1, checkpoints }: PlanWishes, roomBytes: number) {
  const stateBytesPerSequence = piecesBytes(statePieces(model, 1));
  if (stateBytesPerSequence === 0) {
    const none = { stateBytesPerSequence, stateBytes: 0, checkpointCapacity: undefined };
    return { ...none, sequenceCapacity: parallel };
  }
  const fitting = Math.max(Math.floor((roomBytes * stateShare) / stateBytesPerSequence), 1);
  const sequenceCapacity = Math.min(parallel, fitting);
  const wanted = checkpoints ?? 2 * parallel + checkpointsBeside;
  const checkpointCapacity = Math.min(wanted, fitting - sequenceCapacity);
  const stateBytes = piecesBytes(statePieces(model, sequenceCapacity + checkpointCapacity));
  return { stateBytesPerSequence, stateBytes, sequenceCapacity, checkpointCapacity };
}

/** "tq4 with 1.09 kB a token (27 % of f16)": what the cache keeps, and what that saves. */
export function describeCache(plan: MemoryPlan): string {
  const { kvTypes, cacheBytesPerToken: bytes, halfBytesPerToken: half } = plan;
  const saved = bytes < half ? ` (${Math.round((100 * bytes) / half)} % of f16)` : "";
  return `${kvTypesName(kvTypes)} with ${formatBytes(bytes)} a token${saved}`;
}

/** Of all layers. */
export function cacheBytesPerToken({ cache }: Model, { key, value } = halfTypes): number {
  return cache.layers.reduce(
    (sum, { kvHeads, headWidth }) =>
      sum + kvHeads * (kvHeadBytes(key, headWidth) + kvHeadBytes(value, headWidth)),
    0,
  );
}

/** Tokens of cache that there is room for, in whole blocks. */
function fittingTokens(model: Model, perToken: number, roomBytes: number): number {
  // Without attention every length fits.
  if (perToken === 0) return roomBytes > 0 ? roundUp(model.config.contextLength, blockTokens) : 0;
  return Math.floor(roomBytes / (perToken * blockTokens)) * blockTokens;
}

/** The state of recurrent layers, by its name in the model: of sequences, then of checkpoints. */
export function statePieces({ states }: Model, count: number): Piece[] {
  return Object.entries(states).map(([label, bytes]) => ({ label, byteSize: count * bytes }));
}

/** All key caches, then all value caches, by layer. */
export function cachePieces(
  { cache }: Model,
  cacheTokens: number,
  { key, value } = halfTypes,
): Piece[] {
  const tokens = roundUp(cacheTokens, blockTokens);
  const kinds = [
    { name: "keys", type: key },
    { name: "values", type: value },
  ];
  return kinds.flatMap(({ name, type }) =>
    cache.layers.map(({ kvHeads, headWidth }, i) => ({
      label: `${name} of layer ${i}`,
      byteSize: product([tokens, kvHeads, kvHeadBytes(type, headWidth)]),
    })),
  );
}

/** Activations by name, then the logits, then room for attention and sampling. */
export function activationPieces(
  model: Model,
  rowCapacity: number,
  outputCapacity: number,
): Piece[] {
  return [
    ...Object.entries(model.scratch).map(([label, width]) => ({
      label,
      byteSize: rowCapacity * width * 4,
    })),
    { label: "workspace", byteSize: rowCapacity * model.workspace * 4 },
    { label: "logits", byteSize: outputCapacity * model.config.vocabularySize * 4 },
    { label: "attention parts", byteSize: attentionPartBytes(model.attentions) },
    {
      label: "sampling",
      byteSize: sampleScratchBytes(outputCapacity, model.config.vocabularySize),
    },
    // One for each sequence, of which there are no more than outputs.
    { label: "latest tokens", byteSize: outputCapacity * 4 },
  ];
}

/** Texts that are made side by side want one output each. */
function outputCapacityOf({ config }: Model, parallel: number): number {
  const fitting = Math.floor(logitsBytesMax / (config.vocabularySize * 4));
  return Math.min(Math.max(fitting, outputsMin, parallel), rowsMax);
}

function piecesBytes(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { byteSize }) => sum + roundUp(byteSize, sliceAlignment), 0);
}

interface Shortage {
  readonly weightBytes: number;
  readonly activationBytes: number;
  readonly stateBytes: number;
  readonly perToken: number;
  readonly freeBytes: number;
  readonly fitting: number;
  readonly wanted: number;
}

function doesNotFit(model: Model, device: Device, shortage: Shortage): UserError {
  const { weightBytes, activationBytes, stateBytes, perToken, freeBytes, fitting, wanted } =
    shortage;
  const tokens = Math.max(wanted, contextTokensMin);
  const need = weightBytes + activationBytes + stateBytes + tokens * perToken;
  const parts = [
    `${formatBytes(weightBytes)} of weights`,
    `${formatBytes(activationBytes)} of activations`,
    ...(stateBytes > 0 ? [`${formatBytes(stateBytes)} of recurrent state`] : []),
    `${formatBytes(tokens * perToken)} for ${tokens} tokens`,
  ].join(", ");
  const remedy =
    fitting >= contextTokensMin
      ? `shorten the context with -c ${fitting}`
      : "take a smaller model or quantization, or close programs that use the GPU";
  return new UserError(
    "memory",
    `${model.config.name} needs ${formatBytes(need)} (${parts}) and ` +
      `${device.capabilities.name} has ${formatBytes(freeBytes)} free`,
    remedy,
  );
}

/** Blocks of the paged cache for some tokens. */
export function cacheBlockCount(tokens: number): number {
  return ceilDiv(tokens, blockTokens);
}
