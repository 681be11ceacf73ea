/** The tensors of a Qwen3.5 block: its mixer, attention or a delta net, and its feed-forward. */
import type { ExpertWeights } from "../../kernels/experts.ts";
import type { Matrix, Vector } from "../../tensor/tensor.ts";
import { declareExperts } from "../mixture.ts";
import type { Weights } from "../weights.ts";
import type { Shape } from "./shape.ts";

export interface Layer {
  readonly mixerNorm: Vector;
  readonly mixer: AttentionLayer | DeltaLayer;
  readonly feedForwardNorm: Vector;
  readonly feedForward: FeedForward | ExpertWeights;
}

export interface AttentionLayer {
  readonly kind: "attention";
  /** Which of the caches is its own. */
  readonly cacheIndex: number;
  /** [heads, query | gate, headWidth] rows. */
  readonly query: Matrix;
  readonly key: Matrix;
  readonly value: Matrix;
  readonly queryNorm: Vector;
  readonly keyNorm: Vector;
  readonly output: Matrix;
}

export interface DeltaLayer {
  readonly kind: "delta";
  /** Names of its states. */
  readonly past: string;
  readonly memory: string;
  /** Queries and keys of keyHeads, values of valueHeads. */
  readonly mixed: Matrix;
  readonly gate: Matrix;
  /** How much of its value a row writes; with `alpha` behind it in Qwen3-Next. */
  readonly beta: Matrix;
  /** How much of the state a row keeps. */
  readonly alpha: Matrix | undefined;
  readonly convolution: Vector;
  readonly decay: Vector;
  readonly offset: Vector;
  readonly norm: Vector;
  readonly output: Matrix;
}

export interface FeedForward {
  readonly gate: Matrix;
  readonly up: Matrix;
  readonly down: Matrix;
}

/** `cacheIndex`: of the attention cache; undefined for a delta net. */
export function declareLayer(
  weights: Weights,
  shape: Shape,
  index: number,
  cacheIndex: number | undefined,
): Layer {
  const { width, feedForward } = shape;
  const prefix = `blk.${index}`;
  const matrix = (name: string, rows: number, columns: number) =>
    weights.matrix(`${prefix}.${name}.weight`, rows, columns);
  const norm = (name: string) => weights.vector(`${prefix}.${name}.weight`, width);
  return {
    mixerNorm: norm("attn_norm"),
    mixer:
      cacheIndex === undefined
        ? declareDelta(weights, shape, index)
        : declareAttention(weights, shape, index, cacheIndex),
    feedForwardNorm: norm("post_attention_norm"),
    feedForward:
      typeof feedForward === "number"
        ? {
            gate: matrix("ffn_gate", feedForward, width),
            up: matrix("ffn_up", feedForward, width),
            down: matrix("ffn_down", width, feedForward),
          }
        : declareExperts(weights, prefix, width, feedForward),
  };
}

function declareAttention(
  weights: Weights,
  { width, heads, kvHeads, headWidth }: Shape,
  index: number,
  cacheIndex: number,
): AttentionLayer {
  const name = (part: string) => `blk.${index}.${part}.weight`;
  return {
    kind: "attention",
    cacheIndex,
    query: weights.matrix(name("attn_q"), 2 * heads * headWidth, width),
    key: weights.matrix(name("attn_k"), kvHeads * headWidth, width),
    value: weights.matrix(name("attn_v"), kvHeads * headWidth, width),
    queryNorm: weights.vector(name("attn_q_norm"), headWidth),
    keyNorm: weights.vector(name("attn_k_norm"), headWidth),
    output: weights.matrix(name("attn_output"), width, heads * headWidth),
  };
}

function declareDelta(weights: Weights, { width, delta }: Shape, index: number): DeltaLayer {
  const { valueHeads, headWidth, valueWidth, channels, taps, grouped } = delta;
  const name = (part: string) => `blk.${index}.${part}.weight`;
  return {
    kind: "delta",
    past: `past of layer ${index}`,
    memory: `memory of layer ${index}`,
    mixed: weights.matrix(name("attn_qkv"), channels, width),
    gate: weights.matrix(name("attn_gate"), valueWidth, width),
    beta: grouped
      ? weights.matrix(name("ssm_ba"), 2 * valueHeads, width)
      : weights.matrix(name("ssm_beta"), valueHeads, width),
    alpha: grouped ? undefined : weights.matrix(name("ssm_alpha"), valueHeads, width),
    convolution: weights.vector(name("ssm_conv1d"), channels * taps, [taps, channels]),
    // Without ".weight", and already as -exp(A).
    decay: weights.vector(`blk.${index}.ssm_a`, valueHeads),
    offset: weights.vector(`blk.${index}.ssm_dt.bias`, valueHeads),
    norm: weights.vector(name("ssm_norm"), headWidth),
    output: weights.matrix(name("ssm_out"), width, valueWidth),
  };
}
