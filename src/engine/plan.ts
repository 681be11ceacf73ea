/**
 * What a model will need on a device or several, before anything is allocated: yes, yes with a
 * shorter context, or no.
 */
import { invariant, UserError } from "../errors.ts";
import { attentionPartBytes } from "../kernels/attention.ts";
import { halfTypes, kvHeadBytes, type KvTypes } from "../kernels/kv-type.ts";
import { sampleScratchBytes } from "../kernels/sample.ts";
import { blockTokens } from "../kernels/step.ts";
import { ceilDiv, product, roundUp } from "../math.ts";
import type { LayerCache, LayerRange, Model } from "../model/model.ts";
import { cutsOf, partOf, type ModelPart } from "../model/part.ts";
import { weightPieces } from "../model/weights.ts";
import type { Device } from "../vulkan/device.ts";
import { freeDeviceBytes, planPacking, sliceAlignment, type Piece } from "../vulkan/memory.ts";
import { flightCountOf } from "./programs.ts";
import { doesNotFit, namedInVain } from "./shortage.ts";
import { fittingStates, stateCount, statesFor, type StateWishes } from "./state-plan.ts";
import { deviceInVain, splitLayers, type DeviceRoom, type LayerSize } from "./split.ts";

/** What one device gets. */
export interface StagePlan {
  readonly deviceName: string;
  readonly layers: LayerRange;
  readonly weightBytes: number;
  readonly cacheBytes: number;
  readonly stateBytes: number;
  readonly activationBytes: number;
  readonly totalBytes: number;
  /** What may be taken of it. */
  readonly freeBytes: number;
}

/** Bytes are those of all devices together. */
export interface MemoryPlan {
  /** In the order in which a step goes through them. */
  readonly stages: readonly StagePlan[];
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
  /** What was free, less the margin. */
  readonly freeBytes: number;
  /** Rows of a prefill chunk that the activations have room for. */
  readonly rowCapacity: number;
  /** Rows whose logits can be had from one step. */
  readonly outputCapacity: number;
  /** Sequences that have a block table and state. */
  readonly sequenceCapacity: number;
  /** Copies of a sequence's state that can be kept; undefined if the model has no such state. */
  readonly checkpointCapacity: number | undefined;
  /** Texts with such state that drafts can be verified for in one step. */
  readonly spareCapacity: number;
}

export interface PlanWishes extends StateWishes {
  /** Of one text; the longest that fits by default, up to the model's own. */
  readonly contextTokens?: number | undefined;
  /** No longer than this, where the longest that fits is taken. */
  readonly contextTokensMax?: number | undefined;
  /** Of all texts together; a context, or so much that all have a moderate one, if that fits. */
  readonly cacheTokens?: number | undefined;
  /** What the cache keeps keys and values as; halves by default. */
  readonly kvTypes?: KvTypes | undefined;
  /** To take at most of each device, in their order; one number holds for all. */
  readonly memoryBytes?: readonly number[] | undefined;
}

/** Left to the desktop and to other programs: what users of other engines found enough. */
const marginBytes = 512 << 20;
const rowsMax = 512;
/** Of the cache for each of several texts, where there is room. */
const tokensPerSequence = 8192;
/** Logits of many positions at once are for perplexity alone. */
const logitsBytesMax = 64 << 20;
/** Logits of several positions at once, however large the vocabulary. */
const outputsMin = 8;
/** The shortest context that is of any use. */
const contextTokensMin = 256;

/**
 * Over several devices, the layers are split by what each has free. Throws a "memory" error with
 * the numbers if not even one text fits.
 */
export function planMemory(
  given: Device | readonly Device[],
  model: Model,
  wishes: PlanWishes = {},
): MemoryPlan {
  const { config } = model;
  const { contextTokens, parallel = 1, kvTypes = halfTypes } = wishes;
  if (contextTokens !== undefined && contextTokens > config.contextLength) {
    throw new UserError(
      "usage",
      `a context of ${contextTokens} tokens is more than ${config.name} was made for`,
      `choose -c up to ${config.contextLength}`,
    );
  }
  const outputCapacity = outputCapacityOf(model, parallel);
  const seats = seatsOf([given].flat(), model, wishes, outputCapacity);
  const { stateBytes, ...states } = planStates(seats, wishes);
  const fittings = seats.map((seat, i) => fittingTokens(model, seat, stateBytes[i] ?? 0));
  const fitting = Math.min(...fittings);
  const longest = longestOf(model, wishes);
  const wanted = contextTokens ?? Math.min(longest, Math.max(fitting, 0));
  const granted = roundUp(wanted, blockTokens);
  const least = Math.min(contextTokensMin, longest);
  if (granted > fitting || (contextTokens === undefined && wanted < least)) {
    const index = fittings.indexOf(fitting);
    const tokens = Math.max(wanted, contextTokensMin);
    const short = shortageOf(model, seats, index, stateBytes[index] ?? 0);
    throw doesNotFit({ ...short, tokens, remedyTokens: fitting >= contextTokensMin ? fitting : 0 });
  }
  const shared = Math.min(wanted, tokensPerSequence) * states.sequenceCapacity;
  const tokens = roundUp(wishes.cacheTokens ?? shared, blockTokens);
  const cacheTokens = Math.max(granted, Math.min(tokens, fitting));
  const stages = seats.map((seat, i) => stageOf(model, seat, stateBytes[i] ?? 0, cacheTokens));
  const total = (of: (stage: StagePlan) => number) => sum(stages.map(of));
  return {
    stages,
    weightBytes: total((stage) => stage.weightBytes),
    activationBytes: total((stage) => stage.activationBytes),
    cacheBytes: total((stage) => stage.cacheBytes),
    stateBytes: total((stage) => stage.stateBytes),
    totalBytes: total((stage) => stage.totalBytes),
    freeBytes: total((stage) => stage.freeBytes),
    kvTypes,
    cacheBytesPerToken: cacheBytesPerToken(model, kvTypes),
    halfBytesPerToken: cacheBytesPerToken(model),
    contextTokens: wanted,
    cacheTokens,
    rowCapacity: rowsMax,
    outputCapacity,
    ...states,
  };
}

/** Tokens of a text that is as long as it may be. */
function longestOf({ config }: Model, { contextTokensMax }: PlanWishes): number {
  return Math.min(config.contextLength, contextTokensMax ?? config.contextLength);
}

/** A device, and the part of the model that it gets. */
interface Seat {
  readonly device: Device;
  readonly part: ModelPart;
  readonly kvTypes: KvTypes;
  readonly freeBytes: number;
  readonly weightBytes: number;
  readonly activationBytes: number;
}

function seatsOf(
  devices: readonly Device[],
  model: Model,
  wishes: PlanWishes,
  outputCapacity: number,
): Seat[] {
  const { memoryBytes, kvTypes = halfTypes } = wishes;
  const frees = freeBytesOf(devices, memoryBytes);
  const rooms = frees.map((freeBytes, i) => {
    // The logits are those of the last one.
    const outputs = i === devices.length - 1 ? outputCapacity : 0;
    return { freeBytes, fixedBytes: piecesBytes(activationPieces(model, rowsMax, outputs)) };
  });
  const whole = { first: 0, end: model.config.layerCount };
  const ranges = devices.length === 1 ? [whole] : splitModel(model, devices, rooms, wishes);
  return devices.map((device, i) => {
    const part = partOf(model, ranges[i] ?? whole);
    const { blocks } = planPacking(device.capabilities, weightPieces(part.weights));
    const { freeBytes = 0, fixedBytes: activationBytes = 0 } = rooms[i] ?? {};
    return { device, part, kvTypes, freeBytes, weightBytes: sum(blocks), activationBytes };
  });
}

/** What may be taken of each device. One that is named twice is shared by its parts. */
function freeBytesOf(devices: readonly Device[], most: readonly number[] = []): number[] {
  if (most.length > 1 && most.length !== devices.length) {
    throw new UserError(
      "usage",
      `the memory of ${most.length} devices is given and there are ${devices.length}`,
      "give one size for all, or one for each",
    );
  }
  return devices.map((device, i) => {
    const margin = device.capabilities.kind === "cpu" ? 0 : marginBytes;
    const sharers = devices.filter(
      (other) => other === device || other.physical.index === device.physical.index,
    );
    const freeBytes = Math.floor(freeDeviceBytes(device, margin) / sharers.length);
    return Math.min(freeBytes, most[i] ?? most[0] ?? freeBytes);
  });
}

function splitModel(
  model: Model,
  devices: readonly Device[],
  rooms: readonly DeviceRoom[],
  wishes: PlanWishes,
): readonly LayerRange[] {
  const { name } = model.config;
  const longest = longestOf(model, wishes);
  const cuts = cutsOf(model);
  if (cuts.length < devices.length - 1) {
    throw new UserError(
      "usage",
      `${name} can be cut into ${cuts.length + 1} parts and ${devices.length} devices are named`,
      "name fewer with --devices",
    );
  }
  const { contextTokens = longest, parallel = 1 } = wishes;
  const shared = wishes.cacheTokens ?? Math.min(contextTokens, tokensPerSequence) * parallel;
  const most = Math.max(contextTokens, shared);
  const least = Math.min(wishes.contextTokens ?? contextTokensMin, longest);
  const problem = { layers: layerSizes(model, rooms, wishes), cuts, devices: rooms };
  const inVain = deviceInVain(problem, least);
  if (inVain === undefined) return splitLayers(problem, { least, most, step: blockTokens });
  const place = { name: devices[inVain.index]?.capabilities.name ?? "", ...inVain };
  const { freeBytes = 0 } = rooms[inVain.index] ?? {};
  throw namedInVain(name, { ...place, count: devices.length }, inVain.leastBytes, freeBytes);
}

/** By layer, with the state of as many sequences as would be planned on all devices together. */
function layerSizes(
  model: Model,
  rooms: readonly DeviceRoom[],
  wishes: PlanWishes,
): readonly LayerSize[] {
  const seen = new Set<number>();
  const sizes = model.layerMemory.map((_unused, first) => {
    const { weights, states, caches } = partOf(model, { first, end: first + 1 });
    const own = caches.filter((cache) => !seen.has(cache) && seen.add(cache));
    return {
      weightBytes: piecesBytes(weightPieces(weights)),
      stateBytes: piecesBytes(statePieces({ states }, 1)),
      cacheBytesPerToken: cacheBytesPerToken(model, wishes.kvTypes, own),
    };
  });
  const freeBytes = sum(rooms.map((room) => Math.max(room.freeBytes - room.fixedBytes, 0)));
  const roomBytes = freeBytes - sum(sizes.map(({ weightBytes }) => weightBytes));
  const stateBytes = sum(sizes.map((size) => size.stateBytes));
  const count = stateCount(statesFor(wishes, fittingStates(stateBytes, roomBytes)));
  return sizes.map((size) => ({ ...size, stateBytes: size.stateBytes * count }));
}

/** State for as many sequences as are wished for, or as its share of the memory has room for. */
function planStates(seats: readonly Seat[], wishes: PlanWishes) {
  const { parallel = 1 } = wishes;
  const each = seats.map(({ part }) => piecesBytes(statePieces(part, 1)));
  const stateBytesPerSequence = sum(each);
  if (stateBytesPerSequence === 0) {
    const none = { stateBytesPerSequence, stateBytes: each, checkpointCapacity: undefined };
    return { ...none, sequenceCapacity: parallel, spareCapacity: 0 };
  }
  const fittings = seats.map(({ freeBytes, weightBytes, activationBytes }, i) =>
    fittingStates(each[i] ?? 0, freeBytes - weightBytes - activationBytes),
  );
  const capacities = statesFor(wishes, Math.min(...fittings));
  const count = stateCount(capacities);
  const stateBytes = seats.map(({ part }) => piecesBytes(statePieces(part, count)));
  return { stateBytesPerSequence, stateBytes, ...capacities };
}

function stageOf(model: Model, seat: Seat, stateBytes: number, cacheTokens: number): StagePlan {
  const { device, part, kvTypes, freeBytes, weightBytes, activationBytes } = seat;
  const cacheBytes = piecesBytes(cachePieces(model, cacheTokens, kvTypes, part.caches));
  const totalBytes = weightBytes + activationBytes + cacheBytes + stateBytes;
  const { name } = device.capabilities;
  const bytes = { weightBytes, activationBytes, cacheBytes, stateBytes, totalBytes, freeBytes };
  return { deviceName: name, layers: part.layers, ...bytes };
}

function shortageOf(model: Model, seats: readonly Seat[], index: number, stateBytes: number) {
  const seat = seats[index];
  invariant(seat !== undefined, `device ${index} of ${seats.length}`);
  const { part, kvTypes, device, freeBytes, weightBytes, activationBytes } = seat;
  const perToken = cacheBytesPerToken(model, kvTypes, part.caches);
  const bytes = { weightBytes, activationBytes, stateBytes, perToken, freeBytes };
  const { layers } = part;
  const place = { name: device.capabilities.name, index, count: seats.length };
  return { name: model.config.name, layers, place, ...bytes };
}

/** Of keys and values; of some of the caches alone, if they are given. */
export function cacheBytesPerToken(
  model: Model,
  { key, value }: KvTypes = halfTypes,
  indices?: readonly number[],
): number {
  return sum(
    cachesOf(model, indices).map(
      ([, { kvHeads, headWidth }]) =>
        kvHeads * (kvHeadBytes(key, headWidth) + kvHeadBytes(value, headWidth)),
    ),
  );
}

/** Tokens of cache that a device has room for, in whole blocks. */
function fittingTokens(model: Model, seat: Seat, stateBytes: number): number {
  const { freeBytes, weightBytes, activationBytes, part, kvTypes } = seat;
  const roomBytes = freeBytes - weightBytes - activationBytes - stateBytes;
  const perToken = cacheBytesPerToken(model, kvTypes, part.caches);
  // Without attention every length fits.
  if (perToken === 0) return roomBytes > 0 ? Number.POSITIVE_INFINITY : 0;
  return Math.floor(roomBytes / (perToken * blockTokens)) * blockTokens;
}

/** The state of recurrent layers, by its name in the model. */
export function statePieces({ states }: Pick<Model, "states">, count: number): Piece[] {
  return Object.entries(states).map(([label, bytes]) => ({ label, byteSize: count * bytes }));
}

/** All key caches, then all value caches, by layer; some of them alone, if they are given. */
export function cachePieces(
  model: Model,
  cacheTokens: number,
  { key, value }: KvTypes = halfTypes,
  indices?: readonly number[],
): Piece[] {
  const tokens = roundUp(cacheTokens, blockTokens);
  const kinds = [
    { name: "keys", type: key },
    { name: "values", type: value },
  ];
  return kinds.flatMap(({ name, type }) =>
    cachesOf(model, indices).map(([i, { kvHeads, headWidth }]) => ({
      label: `${name} of layer ${i}`,
      byteSize: product([tokens, kvHeads, kvHeadBytes(type, headWidth)]),
    })),
  );
}

function cachesOf({ cache }: Model, indices?: readonly number[]): [number, LayerCache][] {
  const all = [...cache.layers.entries()];
  return indices === undefined ? all : all.filter(([i]) => indices.includes(i));
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
    // One for each sequence, of which there are no more than outputs; without any nobody looks.
    { label: "latest tokens", byteSize: Math.max(outputCapacity, 1) * 4 },
    ...(model.predictor === undefined ? [] : hiddenPieces(model, rowCapacity)),
  ];
}

/** What layers that guess further tokens read of each step under way: they are on one device. */
function hiddenPieces({ config }: Model, rowCapacity: number): Piece[] {
  const byteSize = rowCapacity * config.width * 4;
  return Array.from({ length: flightCountOf(1) }, (_unused, i) => ({
    ...{ label: `hidden ${i}`, byteSize },
  }));
}

/** Texts that are made side by side want one output each. */
function outputCapacityOf({ config }: Model, parallel: number): number {
  const fitting = Math.floor(logitsBytesMax / (config.vocabularySize * 4));
  return Math.min(Math.max(fitting, outputsMin, parallel), rowsMax);
}

function piecesBytes(pieces: readonly Piece[]): number {
  return sum(pieces.map(({ byteSize }) => roundUp(byteSize, sliceAlignment)));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Blocks of the paged cache for some tokens. */
export function cacheBlockCount(tokens: number): number {
  return ceilDiv(tokens, blockTokens);
}
