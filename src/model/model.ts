/** What a model is to the engine, and what a recorded forward pass is to a model. */
import { invariant } from "../errors.ts";
import type { AttentionShape } from "../kernels/attention.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import type { KvTypes } from "../kernels/kv-type.ts";
import { subslice, type BufferSlice } from "../vulkan/buffer.ts";
import type { ModelConfig } from "./config.ts";
import type { Weights } from "./weights.ts";

/** The attention cache that a model needs. */
export interface CacheShape {
  /** Those that keep keys and values. */
  readonly layers: readonly LayerCache[];
}

/** What one layer keeps of each token. */
export interface LayerCache {
  readonly kvHeads: number;
  /** Of keys and of values. */
  readonly headWidth: number;
}

/** Neighbouring layers: from `first` to before `end`. */
export interface LayerRange {
  readonly first: number;
  readonly end: number;
}

/** What a layer has of what stays on the device from step to step. */
export interface LayerMemory {
  /** Of the caches, the one that it writes or reads. */
  readonly cache: number | undefined;
  /** Names of its states. */
  readonly states: readonly string[];
}

/** The memory of one recorded pass. */
export interface Pass {
  /**
   * What is recorded: with the first layer also the embedding, and with the last the head. Before
   * others, the activations that they take up (`Model.carried`) are in their places.
   */
  readonly layers: LayerRange;
  /**
   * The most rows that a step of this program brings. Those of one sequence stand next to each
   * other, in order of position.
   */
  readonly rowCapacity: number;
  /** Sequences that there is state and a block table for. */
  readonly sequenceCapacity: number;
  /** The most rows whose logits are computed; 0 leaves the head out. */
  readonly outputCapacity: number;
  readonly step: BufferSlice;
  /** [sequenceCapacity]: the token that the device chose last for each; see `latestToken`. */
  readonly latest: BufferSlice;
  /** Activations by name, each [rowCapacity, its width] floats or more. */
  readonly scratch: Readonly<Record<string, BufferSlice>>;
  /** Scratch of composed operations, [rowCapacity, `Model.workspace`] floats or more. */
  readonly workspace: BufferSlice;
  /** By number of the cache: [blocks, kvHeads, blockTokens, headWidth]. */
  readonly keyCaches: readonly (BufferSlice | undefined)[];
  readonly valueCaches: readonly (BufferSlice | undefined)[];
  /** What these hold. */
  readonly kvTypes: KvTypes;
  /**
   * Recurrent state by name (`Model.states`), each [sequenceCapacity or more, its floats]. Nobody
   * clears it: a sequence whose row has position 0 begins without a past.
   */
  readonly states: Readonly<Record<string, BufferSlice>>;
  /** Small tables that the model computed (`Model.tables`), by name. */
  readonly tables: Readonly<Record<string, BufferSlice>>;
  /** [rowCapacity, width] floats, written if it is there: all rows behind the last norm. */
  readonly hidden?: BufferSlice | undefined;
  /** [outputCapacity, vocabularySize] floats, written. */
  readonly logits: BufferSlice;
  /** The same where the host reads it. */
  readonly hiddenReadback?: BufferSlice | undefined;
  /**
   * Zeroed room for what the workgroups of attention leave unfinished. Its last four bytes are a
   * counter, which other kernels may use in their turn (`counterOf`).
   */
  readonly attentionParts: BufferSlice;
  /** Results must not depend on the number of rows. */
  readonly deterministic: boolean;
  /** Tokens that a sequence may have. */
  readonly contextTokens: number;
}

/** Layers that guess the token behind the next one. */
export interface Predictor {
  /**
   * Appends a pass whose rows are tokens, each with what the head read of the row before it.
   * `source`: [rowCapacity, width] of that; `target`: [outputCapacity, width] of the same for the
   * guess, written.
   */
  record(context: KernelContext, pass: Pass, hidden: PredictorMemory): void;
}

export interface PredictorMemory {
  readonly source: BufferSlice;
  readonly target: BufferSlice;
}

/** What of a file is wanted beside the model itself. */
export interface ModelOptions {
  /** The layers that guess further tokens, if there are any. */
  readonly predicts?: boolean;
}

export interface Model {
  readonly config: ModelConfig;
  readonly weights: Weights;
  readonly cache: CacheShape;
  /** Bytes a sequence of what recurrent layers carry from row to row, by name. */
  readonly states: Readonly<Record<string, number>>;
  /** By layer. */
  readonly layerMemory: readonly LayerMemory[];
  /** Names of the weights that embedding and head take, beside those of the layers. */
  readonly ends: { readonly embedding: readonly string[]; readonly head: readonly string[] };
  /** Names of the activations that a layer takes up from the one before. */
  readonly carried: readonly string[];
  /** Bytes of weights that a step of one row reads: the floor of decoding. */
  readonly stepBytes: number;
  /** Of its attention layers, in no order: what attention needs room for. */
  readonly attentions: readonly AttentionShape[];
  /** Floats a row of each activation. */
  readonly scratch: Readonly<Record<string, number>>;
  /** Floats a row that composed operations need for themselves. */
  readonly workspace: number;
  /** Constant data for the device. */
  readonly tables: Readonly<Record<string, Uint8Array>>;
  /** Only if it was asked for, and the file has its layers. */
  readonly predictor?: Predictor | undefined;
  /** Appends the forward pass, or the layers of it that the pass names, to a program. */
  record(context: KernelContext, pass: Pass): void;
}

/** Layers that all keep the same. */
export function evenCache(layerCount: number, layer: LayerCache): CacheShape {
  return { layers: Array.from({ length: layerCount }, () => layer) };
}

/** The layers of a pass, each with its number. */
export function layersOf<L>({ layers }: Pass, all: readonly L[]): (readonly [number, L])[] {
  return all.slice(layers.first, layers.end).map((layer, i) => [layers.first + i, layer]);
}

/** The cache of the model's i-th layer that has one. */
export function cachesOf(
  pass: Pass,
  index: number,
): { keyCache: BufferSlice; valueCache: BufferSlice; kvTypes: KvTypes } {
  const keyCache = pass.keyCaches[index];
  const valueCache = pass.valueCaches[index];
  invariant(keyCache !== undefined && valueCache !== undefined, `no cache ${index}`);
  return { keyCache, valueCache, kvTypes: pass.kvTypes };
}

/** A recurrent state of the model. */
export function stateOf(pass: Pass, name: string): BufferSlice {
  const state = pass.states[name];
  invariant(state !== undefined, `no state ${name}`);
  return state;
}

/** A table of the model on the device. */
export function tableOf(pass: Pass, name: string): BufferSlice {
  const table = pass.tables[name];
  invariant(table !== undefined, `no table ${name}`);
  return table;
}

/** An activation of a pass. */
export function scratchSlice(pass: Pass, name: string): BufferSlice {
  const slice = pass.scratch[name];
  invariant(slice !== undefined, `no scratch ${name}`);
  return slice;
}

/** The activations of a pass by the names that the model gave them. */
export function scratchOf<K extends string>(
  pass: Pass,
  names: Readonly<Record<K, number>>,
): Readonly<Record<K, BufferSlice>> {
  for (const name of Object.keys(names))
    invariant(pass.scratch[name] !== undefined, `no scratch ${name}`);
  return pass.scratch as Readonly<Record<K, BufferSlice>>;
}

/** Four bytes that are zero between dispatches. */
export function counterOf({ attentionParts }: Pass): BufferSlice {
  return subslice(attentionParts, attentionParts.byteSize - 4, 4);
}
