/**
 * Grouped-query attention (Ainslie et al. 2023, arXiv 2305.13245) with rotary embedding, as all
 * decoders but a few have it, with what some of them add: norms of query and key heads, windows,
 * soft caps, sinks, a norm behind it.
 */
import type { KernelContext } from "../kernels/kernel.ts";
import { normedProducts } from "../kernels/normed-products.ts";
import { rotaryAttention } from "../kernels/rotary-attention.ts";
import type { Rotation, Temperature } from "../kernels/rope-cache.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { scratchSlice, cachesOf, type Pass } from "./model.ts";
import { addBranch } from "./residual.ts";
import type { Weights } from "./weights.ts";

export interface SelfAttention {
  readonly norm: Vector;
  readonly query: Matrix;
  /** None in a layer that reads the cache of another. */
  readonly key: Matrix | undefined;
  /** None where values are what keys are before norm and rotation. */
  readonly value: Matrix | undefined;
  readonly queryBias: Vector | undefined;
  readonly keyBias: Vector | undefined;
  readonly valueBias: Vector | undefined;
  readonly queryNorm: Vector | undefined;
  readonly keyNorm: Vector | undefined;
  readonly sinks: Vector | undefined;
  readonly output: Matrix;
  readonly outputBias: Vector | undefined;
  readonly postNorm: Vector | undefined;
}

export interface AttentionShape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  readonly epsilon: number;
  /** Of attention scores. */
  readonly scale: number;
  /** Soft cap on attention scores. */
  readonly cap?: number | undefined;
  /** Heads of values are normalized, without weights. */
  readonly normValue?: boolean;
}

/** What an architecture has beyond the usual, so that a file without it is known to be bad. */
export interface AttentionExtras {
  readonly biases?: boolean;
  readonly headNorms?: boolean;
  readonly postNorm?: boolean;
  readonly sinks?: boolean;
  /** There are neither keys nor values: the layer reads the cache of another. */
  readonly borrows?: boolean;
  /** There are no values of their own. */
  readonly keysAsValues?: boolean;
}

/** Biases are taken wherever a file has them. */
export function declareSelfAttention(
  weights: Weights,
  prefix: string,
  width: number,
  { heads, kvHeads, headWidth }: AttentionShape,
  extras: AttentionExtras = {},
): SelfAttention {
  const { biases = false, headNorms = false, postNorm = false, sinks = false } = extras;
  const { borrows = false, keysAsValues = false } = extras;
  const vector = (wanted: boolean, name: string, length: number) =>
    wanted ? weights.vector(`${prefix}.${name}.weight`, length) : undefined;
  const [queryWidth, kvWidth] = [heads * headWidth, kvHeads * headWidth];
  const total = queryWidth + 2 * kvWidth;
  const isFused = weights.has(`${prefix}.attn_qkv.weight`);
  const product = (name: string, first: number, rows: number) => {
    if (isFused) {
      return {
        w: weights.matrixRows(`${prefix}.attn_qkv.weight`, total, width, first, rows),
        bias: weights.vectorValues(`${prefix}.attn_qkv.bias`, total, first, rows),
      };
    }
    const bias = `${prefix}.${name}.bias`;
    return {
      w: weights.matrix(`${prefix}.${name}.weight`, rows, width),
      bias: biases ? weights.vector(bias, rows) : weights.optionalVector(bias, rows),
    };
  };
  const query = product("attn_q", 0, queryWidth);
  const key = borrows ? undefined : product("attn_k", queryWidth, kvWidth);
  const value =
    borrows || keysAsValues ? undefined : product("attn_v", queryWidth + kvWidth, kvWidth);
  return {
    norm: weights.vector(`${prefix}.attn_norm.weight`, width),
    query: query.w,
    key: key?.w,
    value: value?.w,
    queryBias: query.bias,
    keyBias: key?.bias,
    valueBias: value?.bias,
    queryNorm: vector(headNorms, "attn_q_norm", headWidth),
    keyNorm: vector(headNorms && !borrows, "attn_k_norm", headWidth),
    sinks: vector(sinks, "attn_sinks", heads),
    output: weights.matrix(`${prefix}.attn_output.weight`, width, queryWidth),
    outputBias: weights.optionalVector(`${prefix}.attn_output.bias`, width),
    postNorm: vector(postNorm, "post_attention_norm", width),
  };
}

export interface AttentionUse {
  readonly layer: SelfAttention;
  readonly shape: AttentionShape;
  /** Which cache. */
  readonly cache: number;
  /** None where positions are hidden from the layer. */
  readonly rotation: Rotation | undefined;
  /** Keys that a query sees, itself included; all by default. */
  readonly window?: number | undefined;
  readonly temperature?: Temperature | undefined;
}

/** x += Output · Attention(RoPE(Query · h), RoPE(Key · h), Value · h) with h = norm(x) */
export function selfAttention(context: KernelContext, pass: Pass, use: AttentionUse): void {
  const { layer, shape, window, rotation, temperature } = use;
  const { heads, kvHeads, headWidth, epsilon, scale, cap, normValue = false } = shape;
  const { workspace, deterministic, step, rowCapacity } = pass;
  const attended = scratchSlice(pass, "attended");
  const { query, key, value } = project(context, pass, use);
  const { output, queryNorm, keyNorm, sinks } = layer;
  rotaryAttention(context, {
    query,
    rope: {
      key,
      value,
      ...(rotation ?? { rotary: 0, pairs: "halves" }),
      queryNorm,
      keyNorm,
      normValue,
      epsilon,
      temperature,
    },
    ...cachesOf(pass, use.cache),
    result: attended,
    reader: output,
    workspace,
    deterministic,
    parts: pass.attentionParts,
    step,
    rowCapacity,
    heads,
    kvHeads,
    headWidth,
    scale,
    cap,
    sinks,
    window,
  });
  const { outputBias: bias, postNorm } = layer;
  addBranch(context, pass, { w: output, bias, from: attended, postNorm, epsilon });
}

/** Queries, keys and values of the normalized rows. */
function project(context: KernelContext, pass: Pass, { layer, shape }: AttentionUse) {
  const { step, rowCapacity, workspace, deterministic } = pass;
  const query = { w: layer.query, bias: layer.queryBias, y: scratchSlice(pass, "query") };
  const key = layer.key && { w: layer.key, bias: layer.keyBias, y: scratchSlice(pass, "key") };
  const value = layer.value && {
    w: layer.value,
    bias: layer.valueBias,
    y: scratchSlice(pass, "value"),
  };
  normedProducts(context, {
    x: scratchSlice(pass, "x"),
    norm: layer.norm,
    epsilon: shape.epsilon,
    workspace,
    deterministic,
    step,
    rowCapacity,
    products: [query, ...(key ? [key] : []), ...(value ? [value] : [])],
  });
  return { query: query.y, key: key?.y, value: (value ?? key)?.y };
}
