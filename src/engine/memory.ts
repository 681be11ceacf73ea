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
  type Use = ConstructorParameters<typeof MemoryGroup>[1];
  const allocate = (use: Use, pieces: readonly Piece[], label: string) => {
    const group = new MemoryGroup(gpu.device, use, pieces, label);
    groups.push(group);
    return group.slices;
  };
  try {
    const { contextTokens, cacheTokens, rowCapacity, sequenceCapacity } = plan;
    const outputCapacity = part.isLast ? plan.outputCapacity : 0;
    const cachePlan = cachePieces(model, cacheTokens, part.caches);
    const caches = allocate("device", cachePlan, "the cache of keys and values");
    const { checkpointCapacity = 0 } = plan;
    const statePlan = statePieces(part, sequenceCapacity + checkpointCapacity);
    const states = allocate("device", statePlan, "the state of recurrent layers");
    const pieces = activationPieces(model, rowCapacity, outputCapacity);
    const activations = allocate("device", pieces, "activations");
    const shape = { rowCapacity, sequenceCapacity, tableStride: cacheBlockCount(contextTokens) };
    const inFlight = (label: string, byteSize: number) =>
      Array.from({ length: flightCount }, (_unused, i) => ({ label: `${label} ${i}`, byteSize }));
    const written = [
      ...inFlight("step", stepBytes(shape)),
      ...inFlight("sampling", samplingBytes(outputCapacity)),
    ];
    const inputs = allocate("step", written, "the step buffers");
    const logitsBytes = outputCapacity * model.config.vocabularySize * 4;
    const read = [
      { label: "logits", byteSize: logitsBytes },
      ...inFlight("tokens", outputCapacity * 4),
    ];
    const [readback, ...tokens] = allocate("readback", read, "logits and tokens");
    const named = new Map(pieces.map(({ label }, i) => [label, activations[i]]));
    const carried = (isThere: boolean, use: Use, label: string) => {
      const names = isThere ? model.carried : [];
      const all = names.flatMap((name) =>
        inFlight(name, rowCapacity * (model.scratch[name] ?? 0) * 4),
      );
      const slices = allocate(use, all, label);
      return (flight: number) =>
        Object.fromEntries(
          names.map((name, i) => [name, present(slices[i * flightCount + flight])]),
        );
    };
    const arrivals = carried(part.layers.first > 0, "upload", "what the device in front made");
    const departures = carried(!part.isLast, "readback", "what the next device takes up");
    const cachesFrom = (start: number) => {
      const slices: (BufferSlice | undefined)[] = [];
      part.caches.forEach((cache, i) => (slices[cache] = caches[start + i]));
      return slices;
    };
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
        arrivals: arrivals(i),
        departures: departures(i),
      })),
      latest: present(named.get("latest tokens")),
      samplingScratch,
      scratch: Object.fromEntries(
        Object.keys(model.scratch).map((name) => [name, present(named.get(name))]),
      ),
      keyCaches: cachesFrom(0),
      valueCaches: cachesFrom(part.caches.length),
      states: Object.fromEntries(statePlan.map(({ label }, i) => [label, present(states[i])])),
      tables: uploadTables(gpu, model, groups),
      workspace: present(named.get("workspace")),
      logits: present(named.get("logits")),
      attentionParts,
      readback: present(readback),
      contextTokens,
      sequenceCapacity,
    };
  } catch (error) {
    for (const group of groups) group.free();
    throw error;
  }
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
