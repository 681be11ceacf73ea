/**
 * Which pipelines a device would get: the real recording code runs, on memory that does not exist,
 * and what it asks for is written down.
 */
import {
  activationPieces,
  cacheBlockCount,
  cachePieces,
  statePieces,
} from "../../src/engine/plan.ts";
import { readBandwidth } from "../../src/kernels/bandwidth.ts";
import type { KernelContext } from "../../src/kernels/kernel.ts";
import { parseKvTypes, type KvTypeName } from "../../src/kernels/kv-type.ts";
import { repack, repackBlockStep } from "../../src/kernels/repack.ts";
import { sample, sampleScratchBytes, samplingBytes } from "../../src/kernels/sample.ts";
import { stepBytes } from "../../src/kernels/step.ts";
import { describeModel } from "../../src/model/architectures.ts";
import type { Model, Pass } from "../../src/model/model.ts";
import { blockFormats, dtypes } from "../../src/tensor/dtype.ts";
import { planesIn } from "../../src/tensor/tensor.ts";
import type { BufferSlice, DeviceBuffer } from "../../src/vulkan/buffer.ts";
import type { Device } from "../../src/vulkan/device.ts";
import type { Pipeline, PipelineRecipe, Pipelines } from "../../src/vulkan/pipeline.ts";
import type { Program } from "../../src/vulkan/program.ts";
import type { ModelShape } from "./shapes.ts";

/** The address of memory that is never touched. */
const nowhere = { address: 0n } as DeviceBuffer;

/** Programs of one sequence; its length makes no pipeline differ. */
const contextTokens = 4096;

/** All that a device would need for these models, in subgroups of each of these sizes. */
export function recordPipelines(
  device: Device,
  shapes: readonly ModelShape[],
  subgroupSizes: readonly number[],
): PipelineRecipe[] {
  const found = new Map<string, PipelineRecipe>();
  const contexts = subgroupSizes.map((size) => contextOf(device, size, found));
  for (const context of contexts) {
    recordTools(context);
    for (const shape of shapes) recordModel(context, shape);
  }
  return [...found.values()];
}

function contextOf(
  device: Device,
  subgroupSize: number,
  found: Map<string, PipelineRecipe>,
): KernelContext {
  const pipelines = {
    device,
    get(recipe: PipelineRecipe): Pipeline {
      found.set(`${recipe.name} ${recipe.constants?.join()} ${recipe.subgroupSize}`, recipe);
      return { handle: 0n, label: recipe.name };
    },
  };
  const program = { dispatch() {}, copy() {}, fill() {} };
  return {
    program: program as unknown as Program,
    pipelines: pipelines as unknown as Pipelines,
    capabilities: device.capabilities,
    force: { subgroupSize },
  };
}

function recordModel(context: KernelContext, shape: ModelShape): void {
  const model = describeModel(shape.create().open());
  for (const weight of model.weights.declared()) weight.place(room(weight.byteSize));
  for (const kvTypes of shape.kvTypes ?? ["f16"]) {
    for (const rows of shape.rows.flatMap(rowsOf)) {
      model.record(context, passOf(model, kvTypes, rows));
    }
  }
}

function rowsOf(rowCapacity: number): Rows[] {
  const isFew = rowCapacity <= 8;
  return (isFew ? [rowCapacity] : [0, 1]).flatMap((outputCapacity) =>
    (isFew ? [false, true] : [false]).map((deterministic) => ({
      rowCapacity,
      outputCapacity,
      deterministic,
    })),
  );
}

/** What is no part of a model. */
function recordTools(context: KernelContext): void {
  for (const dtype of dtypes) {
    const { blockBytes, blockValues } = blockFormats[dtype];
    const bytes = repackBlockStep * blockBytes;
    const planes = planesIn(room(2 * bytes), dtype, repackBlockStep * blockValues);
    repack(context, { dtype, source: room(bytes), planes, firstBlock: 0 });
  }
  const [outputCapacity, vocabulary] = [1, 128256];
  sample(context, {
    logits: room(vocabulary * 4),
    samplings: room(samplingBytes(outputCapacity)),
    scratch: room(sampleScratchBytes(outputCapacity, vocabulary)),
    tokens: room(4),
    latest: room(4),
    step: room(stepOf(1)),
    outputCapacity,
    vocabulary,
  });
  readBandwidth(context, room(1 << 26), room(1 << 16));
}

type Rows = Pick<Pass, "rowCapacity" | "outputCapacity" | "deterministic">;

function passOf(model: Model, name: KvTypeName, rows: Rows): Pass {
  const { rowCapacity, outputCapacity } = rows;
  const kvTypes = present(parseKvTypes(name));
  const named = (pieces: readonly { label: string; byteSize: number }[]) =>
    Object.fromEntries(pieces.map(({ label, byteSize }) => [label, room(byteSize)]));
  const activations = named(activationPieces(model, rowCapacity, Math.max(outputCapacity, 1)));
  const caches = cachePieces(model, contextTokens, kvTypes).map(({ byteSize }) => room(byteSize));
  const layerCount = model.cache.layers.length;
  return {
    ...rows,
    layers: { first: 0, end: model.config.layerCount },
    sequenceCapacity: 1,
    contextTokens,
    step: room(stepOf(rowCapacity)),
    latest: room(4),
    scratch: activations,
    workspace: present(activations["workspace"]),
    logits: present(activations["logits"]),
    attentionParts: present(activations["attention parts"]),
    keyCaches: caches.slice(0, layerCount),
    valueCaches: caches.slice(layerCount),
    kvTypes,
    states: named(statePieces(model, 1)),
    tables: named(
      Object.entries(model.tables).map(([label, { length }]) => ({ label, byteSize: length })),
    ),
  };
}

function stepOf(rowCapacity: number): number {
  return stepBytes({
    rowCapacity,
    sequenceCapacity: 1,
    tableStride: cacheBlockCount(contextTokens),
  });
}

function room(byteSize: number): BufferSlice {
  return { buffer: nowhere, offset: 0, byteSize };
}

function present<T>(piece: T | undefined): T {
  if (piece === undefined) throw new RangeError("a piece of memory is missing");
  return piece;
}
