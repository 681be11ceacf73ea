/**
 * The memory of an engine on one device beside the weights: cache, recurrent state, activations,
 * tables, the step buffers, the read-back, and what goes from device to device.
 */
import { invariant } from "../errors.ts";
import { samplingBytes } from "../kernels/sample.ts";
import { stepBytes, type StepShape } from "../kernels/step.ts";
import type { Model } from "../model/model.ts";
import type { ModelPart } from "../model/part.ts";
import { hostBytes, type BufferSlice } from "../vulkan/buffer.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { MemoryGroup, type Piece } from "../vulkan/memory.ts";
import {
  activationPieces,
  cacheBlockCount,
  cachePieces,
  statePieces,
  type MemoryPlan,
} from "./plan.ts";
import type { PassMemory } from "./programs.ts";
import { stateCount } from "./state-plan.ts";

export interface EngineMemory extends PassMemory {
  readonly groups: readonly MemoryGroup[];
  readonly shape: StepShape;
}

/** Which part of the model the memory is for, and how many steps may be under way. */
export interface MemoryUse {
  readonly part: ModelPart;
  readonly flightCount: number;
}

/** Allocates what the plan says. Holds nothing if it throws. */
export function allocateEngineMemory(
  gpu: Gpu,
  model: Model,
  plan: MemoryPlan,
  { part, flightCount }: MemoryUse,
): EngineMemory {
  const groups: MemoryGroup[] = [];
  const allocate: Allocate = (use, pieces, label) => {
    const group = new MemoryGroup(gpu.device, use, pieces, label);
    groups.push(group);
    return group.slices;
  };
  try {
    const { contextTokens, cacheTokens, rowCapacity, sequenceCapacity, kvTypes } = plan;
    const outputCapacity = part.isLast ? plan.outputCapacity : 0;
    const cachePlan = cachePieces(model, cacheTokens, kvTypes, part.caches);
    const caches = allocate("device", cachePlan, "the cache of keys and values");
    const statePlan = statePieces(part, stateCount(plan));
    const states = allocate("device", statePlan, "the state of recurrent layers");
    const pieces = activationPieces(model, rowCapacity, outputCapacity);
    const activations = allocate("device", pieces, "activations");
    const shape = { rowCapacity, sequenceCapacity, tableStride: cacheBlockCount(contextTokens) };
    const written = [
      ...eachFlight(flightCount, "step", stepBytes(shape)),
      ...eachFlight(flightCount, "sampling", samplingBytes(outputCapacity)),
    ];
    const inputs = allocate("step", written, "the step buffers");
    const { vocabularySize, width } = model.config;
    const read = [
      { label: "logits", byteSize: outputCapacity * vocabularySize * 4 },
      { label: "hidden states", byteSize: part.isLast ? rowCapacity * width * 4 : 0 },
      ...eachFlight(flightCount, "tokens", outputCapacity * 4),
    ];
    const [readback, hidden, ...tokens] = allocate("readback", read, "logits and tokens");
    const named = new Map(pieces.map(({ label }, i) => [label, activations[i]]));
    const handed = allocateHanded(allocate, model, plan, { part, flightCount });
    const attentionParts = present(named.get("attention parts"));
    const samplingScratch = present(named.get("sampling"));
    gpu.run("counters", (program) => {
      program.fill(attentionParts);
      if (part.isLast) program.fill(samplingScratch);
    });
    return {
      groups,
      shape,
      layers: part.layers,
      flights: tokens.map((slice, i) => ({
        step: present(inputs[i]),
        samplings: present(inputs[flightCount + i]),
        tokens: slice,
        hidden: named.get(`hidden ${i}`),
        ...handed(i),
      })),
      latest: present(named.get("latest tokens")),
      samplingScratch,
      scratch: Object.fromEntries(
        Object.keys(model.scratch).map((name) => [name, present(named.get(name))]),
      ),
      keyCaches: byNumber(part.caches, caches),
      valueCaches: byNumber(part.caches, caches.slice(part.caches.length)),
      kvTypes,
      states: Object.fromEntries(statePlan.map(({ label }, i) => [label, present(states[i])])),
      tables: uploadTables(gpu, model, groups),
      workspace: present(named.get("workspace")),
      logits: present(named.get("logits")),
      attentionParts,
      readback: present(readback),
      hiddenReadback: present(hidden),
      ...{ contextTokens, sequenceCapacity },
    };
  } catch (error) {
    for (const group of groups) group.free();
    throw error;
  }
}

function eachFlight(count: number, name: string, byteSize: number): Piece[] {
  return Array.from({ length: count }, (_unused, i) => ({ label: `${name} ${i}`, byteSize }));
}

type Allocate = (
  use: ConstructorParameters<typeof MemoryGroup>[1],
  pieces: readonly Piece[],
  label: string,
) => readonly BufferSlice[];

/** What comes from the device in front and goes to the next one, for each step under way. */
function allocateHanded(
  allocate: Allocate,
  model: Model,
  { rowCapacity }: MemoryPlan,
  { part, flightCount }: MemoryUse,
) {
  const bytesOf = (name: string) => rowCapacity * (model.scratch[name] ?? 0) * 4;
  const ofOne = model.carried.map((label) => ({ label, byteSize: bytesOf(label) }));
  const pieces = Array.from({ length: flightCount }, () => ofOne).flat();
  const isFirst = part.layers.first === 0;
  const arrivals = allocate("upload", isFirst ? [] : pieces, "what the device in front made");
  const departures = allocate("readback", part.isLast ? [] : pieces, "what the next one takes up");
  const named = (slices: readonly BufferSlice[], flight: number) => {
    const own = slices.slice(flight * model.carried.length, (flight + 1) * model.carried.length);
    return Object.fromEntries(own.map((slice, i) => [model.carried[i], slice]));
  };
  return (flight: number) => ({
    arrivals: named(arrivals, flight),
    departures: named(departures, flight),
  });
}

/** Each slice in the place of its number. */
function byNumber(
  numbers: readonly number[],
  slices: readonly BufferSlice[],
): (BufferSlice | undefined)[] {
  const places: (BufferSlice | undefined)[] = [];
  numbers.forEach((number, i) => (places[number] = slices[i]));
  return places;
}

/** Tables are a few kilobytes that kernels read all the time. */
function uploadTables(gpu: Gpu, model: Model, groups: MemoryGroup[]): Record<string, BufferSlice> {
  const entries = Object.entries(model.tables);
  const pieces = entries.map(([label, bytes]) => ({ label, byteSize: bytes.length }));
  const tables = new MemoryGroup(gpu.device, "device", pieces, "tables");
  groups.push(tables);
  const staging = new MemoryGroup(gpu.device, "upload", pieces, "tables");
  try {
    entries.forEach(([_name, bytes], i) => hostBytes(present(staging.slices[i])).set(bytes));
    gpu.run("tables", (program) =>
      entries.forEach((_entry, i) =>
        program.copy(present(staging.slices[i]), present(tables.slices[i])),
      ),
    );
  } finally {
    staging.free();
  }
  return Object.fromEntries(entries.map(([name], i) => [name, present(tables.slices[i])]));
}

function present(slice: BufferSlice | undefined): BufferSlice {
  invariant(slice !== undefined, "a piece of memory is missing");
  return slice;
}
