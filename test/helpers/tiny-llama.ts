/** Llama models of a few kilobytes with random weights: the file, and what it holds in numbers. */
import { dequantize } from "../../src/tensor/dequantize.ts";
import type { DType } from "../../src/tensor/dtype.ts";
import {
  forgeGguf,
  scalar,
  text,
  type ForgedFile,
  type ForgedTensor,
  type ForgedValue,
} from "./gguf-forge.ts";
import { quantize } from "./quantize.ts";
import { SeededRandom } from "./seeded-random.ts";

export interface TinyShape {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  readonly feedForward: number;
  readonly vocabulary: number;
  readonly contextLength: number;
  readonly ropeBase: number;
  readonly epsilon: number;
}

export interface TinyOptions extends Partial<TinyShape> {
  /** Of all matrices. */
  readonly dtype?: DType;
  readonly seed?: number;
  /** The head is the embedding table. */
  readonly tied?: boolean;
  /** The head has the values of the embedding table, and is a tensor of its own. */
  readonly twin?: boolean;
  readonly biases?: boolean;
  /** Divisors of the rotary frequencies. */
  readonly ropeFreqs?: readonly number[];
  /** Metadata to add, to put in the place of what stands there, or to leave out. */
  readonly pairs?: Readonly<Record<string, ForgedValue | undefined>>;
  /** Last changes to the tensors. */
  readonly edit?: (tensors: readonly ForgedTensor[]) => readonly ForgedTensor[];
}

export interface TinyLlama {
  readonly shape: TinyShape;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The values as the file's types round them. */
  readonly values: ReadonlyMap<string, Float32Array>;
}

const defaultShape: TinyShape = {
  layers: 2,
  width: 64,
  heads: 4,
  kvHeads: 2,
  headWidth: 16,
  feedForward: 96,
  vocabulary: 40,
  contextLength: 256,
  ropeBase: 10_000,
  epsilon: 1e-5,
};

export function tinyLlama(options: TinyOptions = {}): TinyLlama {
  const { dtype = "F32", seed = 1, tied = false, twin = false, biases = false } = options;
  const { ropeFreqs, pairs = {}, edit = (tensors) => tensors, ...given } = options;
  const shape: TinyShape = { ...defaultShape, ...given };
  const random = new SeededRandom(seed);
  const tensors: ForgedTensor[] = [];
  const values = new Map<string, Float32Array>();
  const add = (name: string, type: DType, dims: readonly number[], floats: Float32Array) => {
    const bytes = quantize(type, floats);
    tensors.push({ name, dims, type, bytes });
    values.set(name, dequantize(type, bytes));
  };
  const matrix = (name: string, rows: number, columns: number) =>
    add(name, dtype, [columns, rows], random.floats(rows * columns, 1.5 / Math.sqrt(columns)));
  const vector = (name: string, length: number, mean: number, deviation: number) =>
    add(
      name,
      "F32",
      [length],
      random.floats(length, deviation).map((x) => x + mean),
    );

  const { width, vocabulary } = shape;
  add("token_embd.weight", dtype, [width, vocabulary], random.floats(vocabulary * width));
  for (let layer = 0; layer < shape.layers; layer++) {
    addLayer(`blk.${layer}`, shape, biases, matrix, vector);
  }
  vector("output_norm.weight", width, 1, 0.1);
  const table = tensors[0];
  if (twin && table !== undefined) tensors.push({ ...table, name: "output.weight" });
  else if (!tied) matrix("output.weight", vocabulary, width);
  if (ropeFreqs !== undefined) {
    add("rope_freqs.weight", "F32", [ropeFreqs.length], Float32Array.from(ropeFreqs));
  }
  const file: ForgedFile = {
    pairs: Object.entries({ ...metadataOf(shape), ...pairs }).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, value] as const],
    ),
    tensors: edit(tensors),
  };
  return { shape, bytes: forgeGguf(file), values };
}

function addLayer(
  prefix: string,
  shape: TinyShape,
  biases: boolean,
  matrix: (name: string, rows: number, columns: number) => void,
  vector: (name: string, length: number, mean: number, deviation: number) => void,
): void {
  const { width, heads, kvHeads, headWidth, feedForward } = shape;
  const [queryWidth, kvWidth] = [heads * headWidth, kvHeads * headWidth];
  vector(`${prefix}.attn_norm.weight`, width, 1, 0.1);
  matrix(`${prefix}.attn_q.weight`, queryWidth, width);
  matrix(`${prefix}.attn_k.weight`, kvWidth, width);
  matrix(`${prefix}.attn_v.weight`, kvWidth, width);
  matrix(`${prefix}.attn_output.weight`, width, queryWidth);
  if (biases) {
    vector(`${prefix}.attn_q.bias`, queryWidth, 0, 0.5);
    vector(`${prefix}.attn_k.bias`, kvWidth, 0, 0.5);
    vector(`${prefix}.attn_v.bias`, kvWidth, 0, 0.5);
    vector(`${prefix}.attn_output.bias`, width, 0, 0.5);
  }
  vector(`${prefix}.ffn_norm.weight`, width, 1, 0.1);
  matrix(`${prefix}.ffn_gate.weight`, feedForward, width);
  matrix(`${prefix}.ffn_up.weight`, feedForward, width);
  matrix(`${prefix}.ffn_down.weight`, width, feedForward);
}

function metadataOf(shape: TinyShape): Record<string, ForgedValue> {
  const count = (value: number) => scalar("u32", value);
  return {
    "general.architecture": text("llama"),
    "general.name": text("tiny"),
    "llama.block_count": count(shape.layers),
    "llama.context_length": count(shape.contextLength),
    "llama.embedding_length": count(shape.width),
    "llama.feed_forward_length": count(shape.feedForward),
    "llama.attention.head_count": count(shape.heads),
    "llama.attention.head_count_kv": count(shape.kvHeads),
    "llama.attention.key_length": count(shape.headWidth),
    "llama.attention.value_length": count(shape.headWidth),
    "llama.attention.layer_norm_rms_epsilon": scalar("f32", shape.epsilon),
    "llama.rope.dimension_count": count(shape.headWidth),
    "llama.rope.freq_base": scalar("f32", shape.ropeBase),
  };
}
