/** The next token of each output, chosen on the device. */
import { invariant } from "../errors.ts";
import { ceilDiv } from "../math.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import { u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, updates, writes, type KernelContext } from "./kernel.ts";

export const sampleKernel = defineKernel("sample", {
  logits: reads,
  samplings: reads,
  biases: reads,
  candidates: updates,
  counters: updates,
  tokens: writes,
  latest: writes,
  step: reads,
  vocabulary: u32,
});

/** Candidates that the kernel can keep; a larger top-k is the host's to sample. */
export const candidatesMax = 64;
/** Tokens with a bias that all outputs of a step may have together. */
export const biasesMax = 1024;

/** How one output is sampled; the words of `Sampling` in shaders/sample.comp. */
export interface OutputSampling {
  /** 0 takes the best candidate. */
  readonly temperature: number;
  /** 1 to `candidatesMax`. */
  readonly topK: number;
  readonly topP: number;
  readonly minP: number;
  /** Uniform in [0, 1). */
  readonly random: number;
  readonly biases: ReadonlyMap<number, number>;
}

/** The best token. */
export const greedySampling: OutputSampling = {
  temperature: 0,
  topK: 1,
  topP: 1,
  minP: 0,
  random: 0,
  biases: new Map(),
};

const samplingWords = 8;
/** Invocations that share a part of the vocabulary; more than `candidatesMax`. */
const workgroup = 128;
/** Logits that an invocation looks after. */
const share = 16;
/** How the vocabulary is shared out: token i of a part is one of invocation i % `invocations`. */
export const vocabularyShares = { invocations: workgroup, partTokens: workgroup * share } as const;

export interface Sample {
  /** [outputCapacity, vocabulary] */
  readonly logits: BufferSlice;
  /** `samplingBytes`, written by `writeSamplings`. */
  readonly samplings: BufferSlice;
  /** Zeroed scratch of `sampleScratchBytes`. */
  readonly scratch: BufferSlice;
  /** [outputCapacity] token ids, written. */
  readonly tokens: BufferSlice;
  /** [sequences]: the latest token of each, written; the next step may read it. */
  readonly latest: BufferSlice;
  readonly step: BufferSlice;
  readonly outputCapacity: number;
  readonly vocabulary: number;
}

/** Parameters of the outputs, then the biases. */
export function samplingBytes(outputCapacity: number): number {
  return outputCapacity * samplingWords * 4 + biasesMax * 8;
}

/** Counters, then the candidates of every part. */
export function sampleScratchBytes(outputCapacity: number, vocabulary: number): number {
  return counterBytes(outputCapacity) + outputCapacity * partCount(vocabulary) * candidatesMax * 8;
}

function counterBytes(outputCapacity: number): number {
  return ceilDiv(outputCapacity * 4, 256) * 256;
}

function partCount(vocabulary: number): number {
  return ceilDiv(vocabulary, workgroup * share);
}

/** Writes how each output of a step is to be sampled. */
export function writeSamplings(
  bytes: Uint8Array,
  outputCapacity: number,
  outputs: readonly OutputSampling[],
): void {
  invariant(outputs.length <= outputCapacity, `${outputs.length} outputs to sample`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let biasCount = 0;
  outputs.forEach(({ temperature, topK, topP, minP, random, biases }, i) => {
    const at = i * samplingWords * 4;
    invariant(topK >= 1 && topK <= candidatesMax, `top-k ${topK}`);
    invariant(biasCount + biases.size <= biasesMax, `${biasCount + biases.size} biases`);
    view.setFloat32(at, temperature, true);
    view.setUint32(at + 4, topK, true);
    view.setFloat32(at + 8, topP, true);
    view.setFloat32(at + 12, minP, true);
    view.setFloat32(at + 16, random, true);
    view.setUint32(at + 20, biasCount, true);
    view.setUint32(at + 24, biases.size, true);
    for (const [token, bias] of biases) {
      const biasAt = outputCapacity * samplingWords * 4 + biasCount * 8;
      view.setUint32(biasAt, token, true);
      view.setFloat32(biasAt + 4, bias, true);
      biasCount++;
    }
  });
}

export function sample(context: KernelContext, args: Sample): void {
  const { logits, samplings, scratch, tokens, latest, step, outputCapacity, vocabulary } = args;
  const parts = partCount(vocabulary);
  const parameterBytes = outputCapacity * samplingWords * 4;
  const counters = counterBytes(outputCapacity);
  launch(context, sampleKernel, {
    shader: "sample",
    constants: [workgroup, candidatesMax],
    parameters: {
      logits,
      samplings: subslice(samplings, 0, parameterBytes),
      biases: subslice(samplings, parameterBytes, biasesMax * 8),
      counters: subslice(scratch, 0, counters),
      candidates: subslice(scratch, counters, outputCapacity * parts * candidatesMax * 8),
      tokens,
      latest,
      step,
      vocabulary,
    },
    groups: [parts, outputCapacity],
    label: "sample",
  });
}
