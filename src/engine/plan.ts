/**
 * What a model will need on a device, before anything is allocated: yes, yes with a shorter
 * context, or no.
 */
import { UserError } from "../errors.ts";
import { attentionPartBytes } from "../kernels/attention.ts";
import { blockTokens } from "../kernels/step.ts";
import { ceilDiv, formatBytes, product, roundUp } from "../math.ts";
import type { Model } from "../model/model.ts";
import { weightPieces } from "../model/weights.ts";
import type { Device } from "../vulkan/device.ts";
import { freeDeviceBytes, planPacking, sliceAlignment, type Piece } from "../vulkan/memory.ts";

export interface MemoryPlan {
  readonly weightBytes: number;
  readonly cacheBytesPerToken: number;
  readonly contextTokens: number;
  readonly cacheBytes: number;
  /** Of recurrent layers, which hold state and no keys and values. */
  readonly stateBytes: number;
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
}

/** Left to the desktop and to other programs: what users of other engines found enough. */
const marginBytes = 512 << 20;
const rowsMax = 512;
const sequencesMax = 1;
/** Logits of many positions at once are for perplexity alone. */
const logitsBytesMax = 64 << 20;
/** Sequences that decode side by side want one output each. */
const outputsMin = 8;
/** The shortest context that is of any use. */
const contextTokensMin = 256;

/**
 * Plans for a context of `contextTokens`, or for the longest that fits up to the model's own.
 * Throws a "memory" error with the numbers if it does not fit.
 */
export function planMemory(device: Device, model: Model, contextTokens?: number): MemoryPlan {
  const { config } = model;
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
  const activationBytes = piecesBytes(activationPieces(model, rowsMax, outputCapacityOf(model)));
  const stateBytes = piecesBytes(statePieces(model, sequencesMax));
  const perToken = cacheBytesPerToken(model);
  const fitting = fittingTokens(model, freeBytes - weightBytes - activationBytes - stateBytes);
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
  const cacheBytes = piecesBytes(cachePieces(model, granted));
  return {
    weightBytes,
    activationBytes,
    cacheBytes,
    stateBytes,
    freeBytes,
    cacheBytesPerToken: perToken,
    contextTokens: wanted,
    totalBytes: weightBytes + activationBytes + cacheBytes + stateBytes,
    rowCapacity: rowsMax,
    outputCapacity: outputCapacityOf(model),
    sequenceCapacity: sequencesMax,
  };
}

/** Keys and values in half precision. */
export function cacheBytesPerToken({ cache }: Model): number {
  return cache.layers.reduce(
    (sum, { kvHeads, headWidth }) => sum + product([kvHeads, headWidth, 2, 2]),
    0,
  );
}

/** Tokens of cache that there is room for, in whole blocks. */
function fittingTokens(model: Model, roomBytes: number): number {
  const perToken = cacheBytesPerToken(model);
  // Without attention every length fits.
  if (perToken === 0) return roomBytes > 0 ? roundUp(model.config.contextLength, blockTokens) : 0;
  return Math.floor(roomBytes / (perToken * blockTokens)) * blockTokens;
}

/** The state of recurrent layers, by its name in the model. */
export function statePieces({ states }: Model, sequenceCapacity: number): Piece[] {
  return Object.entries(states).map(([label, bytes]) => ({
    label,
    byteSize: sequenceCapacity * bytes,
  }));
}

/** All key caches, then all value caches, by layer. */
export function cachePieces({ cache }: Model, contextTokens: number): Piece[] {
  const tokens = roundUp(contextTokens, blockTokens);
  return ["keys", "values"].flatMap((kind) =>
    cache.layers.map(({ kvHeads, headWidth }, i) => ({
      label: `${kind} of layer ${i}`,
      byteSize: product([tokens, kvHeads, headWidth, 2]),
    })),
  );
}

/** Activations by name, then the logits, then room for unfinished attention. */
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
  ];
}

function outputCapacityOf({ config }: Model): number {
  const fitting = Math.floor(logitsBytesMax / (config.vocabularySize * 4));
  return Math.min(Math.max(fitting, outputsMin), rowsMax);
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

/** Blocks of the paged cache for a context. */
export function cacheBlockCount(contextTokens: number): number {
  return ceilDiv(contextTokens, blockTokens);
}
