/**
 * Llama (Touvron et al. 2023; Grattafiori et al. 2024), and with it Mistral: pre-norm blocks of
 * grouped-query attention with rotary embedding and a SwiGLU feed-forward.
 */
import type { GgufFile } from "../gguf/file.ts";
import { attention } from "../kernels/attention.ts";
import { embed } from "../kernels/embed.ts";
import { gatedProduct, gatedProductFloats } from "../kernels/gated-product.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { matmul } from "../kernels/matmul.ts";
import { normedProducts } from "../kernels/normed-products.ts";
import { rmsNorm } from "../kernels/rms-norm.ts";
import { ropeCache, rotaryTurns } from "../kernels/rope-cache.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { ConfigReader, type ModelConfig } from "./config.ts";
import { cachesOf, scratchOf, tableOf, type CacheShape, type Model, type Pass } from "./model.ts";
import { readRope, type Rope } from "./rope.ts";
import { Weights } from "./weights.ts";

interface Layer {
  readonly attentionNorm: Vector;
  readonly query: Matrix;
  readonly key: Matrix;
  readonly value: Matrix;
  readonly queryBias: Vector | undefined;
  readonly keyBias: Vector | undefined;
  readonly valueBias: Vector | undefined;
  readonly output: Matrix;
  readonly outputBias: Vector | undefined;
  readonly feedForwardNorm: Vector;
  readonly gate: Matrix;
  readonly up: Matrix;
  readonly down: Matrix;
}

interface Shape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  readonly feedForward: number;
  readonly epsilon: number;
  /** Of attention scores. */
  readonly scale: number;
}

/** Floats a row of each activation. */
type Scratch = "x" | "query" | "key" | "value" | "attended" | "gated" | "outputs";

export class Llama implements Model {
  readonly config: ModelConfig;
  readonly weights: Weights;
  readonly cache: CacheShape;
  /** All memory of the past is in the cache. */
  readonly states = {};
  readonly attention: { readonly heads: number; readonly headWidth: number };
  readonly stepBytes: number;
  readonly scratch: Readonly<Record<Scratch, number>>;
  readonly workspace: number;
  readonly tables: Readonly<Record<"frequencies", Uint8Array>>;
  readonly #shape: Shape;
  readonly #rope: Rope;
  readonly #embedding: Matrix;
  readonly #layers: readonly Layer[];
  readonly #outputNorm: Vector;
  readonly #output: Matrix;

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "llama");
    const weights = new Weights(file);
    this.weights = weights;
    this.config = reader.common();
    const { width, layerCount, vocabularySize } = this.config;
    this.#shape = readShape(reader, width);
    const { heads, kvHeads, headWidth, feedForward } = this.#shape;
    const divisors = weights.values("rope_freqs.weight");
    this.#rope = readRope(reader, { headWidth, pairs: "neighbours", divisors });

    this.#embedding = weights.matrix("token_embd.weight", vocabularySize, width);
    this.#layers = Array.from({ length: layerCount }, (_unused, i) =>
      declareLayer(weights, `blk.${i}`, width, this.#shape),
    );
    this.#outputNorm = weights.vector("output_norm.weight", width);
    // Small models share the table of the embedding with the head.
    const head = weights.has("output.weight") ? "output.weight" : "token_embd.weight";
    this.#output = weights.matrix(head, vocabularySize, width);

    // Of an embedding table that is not the head as well, a step reads one row.
    this.stepBytes =
      weights.byteSize - (head === "output.weight" ? weights.byteSizeOf("token_embd.weight") : 0);
    this.cache = { layerCount, kvHeads, headWidth };
    this.attention = { heads, headWidth };
    this.scratch = {
      x: width,
      query: heads * headWidth,
      key: kvHeads * headWidth,
      value: kvHeads * headWidth,
      attended: heads * headWidth,
      gated: feedForward,
      outputs: width,
    };
    this.workspace = gatedProductFloats(width, feedForward);
    this.tables = { frequencies: rotaryTurns(this.#rope.radians) };
  }

  record(context: KernelContext, pass: Pass): void {
    const { step, rowCapacity, outputCapacity, logits, deterministic } = pass;
    const { epsilon } = this.#shape;
    const s = scratchOf(pass, this.scratch);
    embed(context, { table: this.#embedding, x: s.x, step, rowCapacity });
    this.#layers.forEach((layer, i) => {
      this.#attend(context, pass, layer, i);
      this.#feedForward(context, pass, layer);
    });
    if (outputCapacity === 0) return;
    const rows = { step, rowCapacity: outputCapacity };
    const [x, y] = [s.x, s.outputs];
    rmsNorm(context, { x, weight: this.#outputNorm, y, epsilon, gather: true, ...rows });
    matmul(context, { w: this.#output, x: y, y: logits, outputs: true, deterministic, ...rows });
  }

  /** x += Output · Attention(RoPE(Query · h), RoPE(Key · h), Value · h) with h = norm(x) */
  #attend(context: KernelContext, pass: Pass, layer: Layer, index: number): void {
    const { step, rowCapacity, workspace, attentionSplits, deterministic } = pass;
    const { heads, kvHeads, headWidth, epsilon, scale } = this.#shape;
    const { rotary, pairs, magnitude } = this.#rope;
    const s = scratchOf(pass, this.scratch);
    const rows = { step, rowCapacity };
    normedProducts(context, {
      x: s.x,
      norm: layer.attentionNorm,
      epsilon,
      workspace,
      deterministic,
      ...rows,
      products: [
        { w: layer.query, bias: layer.queryBias, y: s.query },
        { w: layer.key, bias: layer.keyBias, y: s.key },
        { w: layer.value, bias: layer.valueBias, y: s.value },
      ],
    });
    const caches = cachesOf(pass, index);
    ropeCache(context, {
      query: s.query,
      key: s.key,
      value: s.value,
      ...caches,
      frequencies: tableOf(pass, "frequencies"),
      heads,
      kvHeads,
      headWidth,
      rotary,
      pairs,
      magnitude,
      ...rows,
    });
    attention(context, {
      query: s.query,
      ...caches,
      result: s.attended,
      parts: pass.attentionParts,
      heads,
      kvHeads,
      headWidth,
      scale,
      splits: attentionSplits,
      ...rows,
    });
    matmul(context, {
      w: layer.output,
      bias: layer.outputBias,
      x: s.attended,
      y: s.x,
      accumulate: true,
      deterministic,
      ...rows,
    });
  }

  /** x += Down · (silu(Gate · h) ⊙ (Up · h)) with h = norm(x) */
  #feedForward(context: KernelContext, pass: Pass, layer: Layer): void {
    const { step, rowCapacity, workspace, deterministic } = pass;
    const { epsilon } = this.#shape;
    const s = scratchOf(pass, this.scratch);
    const rows = { step, rowCapacity, deterministic };
    const { gate, up, down } = layer;
    gatedProduct(context, {
      x: s.x,
      norm: layer.feedForwardNorm,
      epsilon,
      gate,
      up,
      y: s.gated,
      workspace,
      ...rows,
    });
    matmul(context, { w: down, x: s.gated, y: s.x, accumulate: true, ...rows });
  }
}

function readShape(reader: ConfigReader, width: number): Shape {
  const { heads, kvHeads } = reader.heads();
  const headWidth = reader.count("attention.key_length", 512, Math.floor(width / heads));
  const valueWidth = reader.count("attention.value_length", 512, headWidth);
  if (headWidth % 8 !== 0 || valueWidth !== headWidth) {
    throw reader.bad(
      `attention heads of width ${headWidth} (values ${valueWidth}) are not supported`,
    );
  }
  if ((reader.optionalNumber("expert_count") ?? 0) > 0) {
    throw reader.bad("a mixture of experts in architecture llama is not supported");
  }
  return {
    heads,
    kvHeads,
    headWidth,
    feedForward: reader.count("feed_forward_length", 1 << 20),
    epsilon: reader.positive("attention.layer_norm_rms_epsilon"),
    scale: reader.positive("attention.scale", 1 / Math.sqrt(headWidth)),
  };
}

function declareLayer(weights: Weights, prefix: string, width: number, shape: Shape): Layer {
  const { heads, kvHeads, headWidth, feedForward } = shape;
  const matrix = (name: string, rows: number, columns: number) =>
    weights.matrix(`${prefix}.${name}.weight`, rows, columns);
  const norm = (name: string) => weights.vector(`${prefix}.${name}.weight`, width);
  const bias = (name: string, length: number) =>
    weights.optionalVector(`${prefix}.${name}.bias`, length);
  const [queryWidth, kvWidth] = [heads * headWidth, kvHeads * headWidth];
  return {
    attentionNorm: norm("attn_norm"),
    query: matrix("attn_q", queryWidth, width),
    key: matrix("attn_k", kvWidth, width),
    value: matrix("attn_v", kvWidth, width),
    queryBias: bias("attn_q", queryWidth),
    keyBias: bias("attn_k", kvWidth),
    valueBias: bias("attn_v", kvWidth),
    output: matrix("attn_output", width, queryWidth),
    outputBias: bias("attn_output", width),
    feedForwardNorm: norm("ffn_norm"),
    gate: matrix("ffn_gate", feedForward, width),
    up: matrix("ffn_up", feedForward, width),
    down: matrix("ffn_down", width, feedForward),
  };
}
