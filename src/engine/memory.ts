/**
 * The device memory of an engine beside the weights: cache, recurrent state, activations, tables,
 * the step buffer, the read-back.
 */
import { invariant } from "../errors.ts";
import { samplingBytes } from "../kernels/sample.ts";
import { stepBytes, type StepShape } from "../kernels/step.ts";
import type { Model } from "../model/model.ts";
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
import { stepsInFlight, type PassMemory } from "./programs.ts";

export interface EngineMemory extends PassMemory {
  readonly groups: readonly MemoryGroup[];
  readonly shape: StepShape;
}

/** Allocates what the plan says. Holds nothing if it throws. */
export function allocateEngineMemory(gpu: Gpu, model: Model, plan: MemoryPlan): EngineMemory {
  const groups: MemoryGroup[] = [];
  type Use = "device" | "step" | "readback";
  const allocate = (use: Use, pieces: readonly Piece[], label: string) => {
    const group = new MemoryGroup(gpu.device, use, pieces, label);
    groups.push(group);
    return group.slices;
  };
  try {
    const { contextTokens, cacheTokens, rowCapacity, outputCapacity, sequenceCapacity } = plan;
    const { kvTypes } = plan;
    const cachePlan = cachePieces(model, cacheTokens, kvTypes);
    const caches = allocate("device", cachePlan, "the cache of keys and values");
    const { checkpointCapacity = 0 } = plan;
    const statePlan = statePieces(model, sequenceCapacity + checkpointCapacity);
    const states = allocate("device", statePlan, "the state of recurrent layers");
    const pieces = activationPieces(model, rowCapacity, outputCapacity);
    const activations = allocate("device", pieces, "activations");
    const shape = { rowCapacity, sequenceCapacity, tableStride: cacheBlockCount(contextTokens) };
    const inFlight = (label: string, byteSize: number) =>
      Array.from({ length: stepsInFlight }, (_unused, i) => ({ label: `${label} ${i}`, byteSize }));
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
    const layerCount = model.cache.layers.length;
    const attentionParts = present(named.get("attention parts"));
    const samplingScratch = present(named.get("sampling"));
    gpu.run("counters", (program) => {
      program.fill(attentionParts);
      program.fill(samplingScratch);
    });
    return {
      groups,
      shape,
      flights: tokens.map((slice, i) => ({
        step: present(inputs[i]),
        samplings: present(inputs[stepsInFlight + i]),
        tokens: slice,
      })),
      latest: present(named.get("latest tokens")),
      samplingScratch,
      scratch: Object.fromEntries(
        Object.keys(model.scratch).map((name) => [name, present(named.get(name))]),
      ),
      keyCaches: caches.slice(0, layerCount),
      valueCaches: caches.slice(layerCount),
      kvTypes,
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
