/**
 * LFM2 (Liquid AI 2025, arXiv 2511.23404), dense or as a mixture of experts: most layers are short
 * gated convolutions, which carry a few rows from step to step; the others are attention with
 * normalized queries and keys.
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { normedProducts } from "../kernels/normed-products.ts";
import { convTapsMax, shortConv, shortConvStateBytes } from "../kernels/short-conv.ts";
import type { Matrix, Vector } from "../tensor/tensor.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, type DecoderShape } from "./decoder.ts";
import { declareFeedForward, feedForward, type FeedForward } from "./feed-forward.ts";
import { declareMixture, mixture, readMixture, type Mixture } from "./mixture.ts";
import {
  evenCache,
  layersOf,
  scratchSlice,
  stateOf,
  type LayerMemory,
  type Pass,
} from "./model.ts";
import { addBranch } from "./residual.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention, type SelfAttention } from "./self-attention.ts";

interface Layer {
  readonly mixer: AttentionMixer | Convolution;
  readonly inner: FeedForward | Mixture;
}

interface AttentionMixer {
  readonly kind: "attention";
  readonly layer: SelfAttention;
  readonly cache: number;
}

interface Convolution {
  readonly kind: "convolution";
  readonly norm: Vector;
  /** To b, g and v: [3 · width, width]. */
  readonly input: Matrix;
  /** [width, taps] */
  readonly weight: Vector;
  readonly output: Matrix;
  /** The name of its state. */
  readonly past: string;
}

export class Lfm2 extends Decoder {
  readonly #layers: readonly Layer[];

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, file.metadata.string("general.architecture") ?? "lfm2");
    const { layerCount, width } = reader.common();
    const { shape, kvHeads } = readShape(reader, layerCount, width);
    const taps = reader.count("shortconv.l_cache", convTapsMax);
    const experts = readMixture(reader, { scoring: readScoring(reader), normalize: true });
    const dense = experts
      ? reader.optionalCount("leading_dense_block_count", layerCount)
      : layerCount;
    const caching = kvHeads.filter((count) => count > 0);
    super(reader, {
      shape,
      mixture: experts,
      cache: evenCache(caching.length, shape),
      layerMemory: memoryOf(kvHeads),
      ropes: { frequencies: readRope(reader, { headWidth: shape.headWidth, pairs: "halves" }) },
      scratch: { mixed: 3 * width, convolved: width },
      states: Object.fromEntries(
        kvHeads.flatMap((count, i) =>
          count > 0 ? [] : [[pastOf(i), shortConvStateBytes(width, taps)]],
        ),
      ),
      // What the converter calls the norm behind the last layer.
      outputNorm: file.tensor("token_embd_norm.weight") && "token_embd_norm.weight",
    });
    const { weights } = this;
    let cacheCount = 0;
    this.#layers = this.layers((prefix, i) => ({
      mixer:
        (kvHeads[i] ?? 0) > 0
          ? {
              kind: "attention",
              layer: declareSelfAttention(weights, prefix, width, shape, { headNorms: true }),
              cache: cacheCount++,
            }
          : {
              kind: "convolution",
              norm: weights.vector(`${prefix}.attn_norm.weight`, width),
              input: weights.matrix(`${prefix}.shortconv.in_proj.weight`, 3 * width, width),
              weight: weights.vector(`${prefix}.shortconv.conv.weight`, width * taps, [
                taps,
                width,
              ]),
              output: weights.matrix(`${prefix}.shortconv.out_proj.weight`, width, width),
              past: pastOf(i),
            },
      inner:
        experts === undefined || i < dense
          ? declareFeedForward(weights, prefix, width, shape.feedForward)
          : declareMixture(weights, prefix, width, experts),
    }));
  }

  record(context: KernelContext, pass: Pass): void {
    const { epsilon } = this.shape;
    this.embed(context, pass);
    for (const [, { mixer, inner }] of layersOf(pass, this.#layers)) {
      if (mixer.kind === "convolution") this.#convolve(context, pass, mixer);
      else this.attend(context, pass, { ...mixer, rope: "frequencies" });
      if ("experts" in inner) mixture(context, pass, { layer: inner, epsilon });
      else feedForward(context, pass, { layer: inner, epsilon });
    }
    this.readOut(context, pass);
  }

  /** x += Output · (g ⊙ Convolution(b ⊙ v)) with (b, g, v) = Input · norm(x) */
  #convolve(context: KernelContext, pass: Pass, layer: Convolution): void {
    const { step, rowCapacity, sequenceCapacity, workspace, deterministic } = pass;
    const { norm, input: w, weight, output, past } = layer;
    const { epsilon } = this.shape;
    const rows = { step, rowCapacity };
    const [u, y] = [scratchSlice(pass, "mixed"), scratchSlice(pass, "convolved")];
    const products = [{ w, y: u }];
    const x = scratchSlice(pass, "x");
    normedProducts(context, { x, norm, epsilon, products, workspace, deterministic, ...rows });
    shortConv(context, {
      u,
      gated: true,
      weight,
      y,
      state: stateOf(pass, past),
      channels: this.config.width,
      sequenceCapacity,
      ...rows,
    });
    addBranch(context, pass, { w: output, from: y, activation: "float", epsilon });
  }
}

function pastOf(index: number): string {
  return `past of layer ${index}`;
}

/** Layers with heads have the caches in their order, the others a past. */
function memoryOf(kvHeads: readonly number[]): LayerMemory[] {
  let cacheCount = 0;
  return kvHeads.map((count, i) =>
    count > 0 ? { cache: cacheCount++, states: [] } : { cache: undefined, states: [pastOf(i)] },
  );
}

/** `kvHeads` of each layer: none means that it is a convolution. */
function readShape(
  reader: ConfigReader,
  layerCount: number,
  width: number,
): { shape: DecoderShape; kvHeads: readonly number[] } {
  const heads = reader.count("attention.head_count", 4096);
  const kvHeads = reader.counts("attention.head_count_kv", layerCount, { min: 0, max: heads });
  const most = Math.max(1, ...kvHeads);
  const headWidth = reader.count("attention.key_length", 512, Math.floor(width / heads));
  if (kvHeads.some((count) => count !== 0 && count !== most) || heads % most !== 0) {
    throw reader.bad(`${heads} attention heads cannot share ${kvHeads.join(", ")} evenly`);
  }
  if (headWidth % 8 !== 0) throw reader.unsupported(`attention heads of width ${headWidth}`);
  return {
    kvHeads,
    shape: {
      heads,
      kvHeads: most,
      headWidth,
      feedForward: reader.count("feed_forward_length", 1 << 20),
      epsilon: reader.positive("attention.layer_norm_rms_epsilon"),
      scale: 1 / Math.sqrt(headWidth),
    },
  };
}

/** GGUF's numbers for how a router's logits become scores. */
function readScoring(reader: ConfigReader): "softmax" | "sigmoid" {
  const number = reader.optionalCount("expert_gating_func", 1 << 16);
  if (number > 2) throw reader.unsupported(`expert_gating_func ${number}`);
  return number === 2 ? "sigmoid" : "softmax";
}
