/**
 * Llama (Touvron et al. 2023; Grattafiori et al. 2024), and with it Mistral and Mixtral (Jiang et
 * al. 2024, arXiv 2401.04088): pre-norm blocks of grouped-query attention with rotary embedding and
 * a SwiGLU feed-forward, which in Mixtral is a mixture of experts.
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readDecoderShape, type DecoderLayer, type MixtureLayer } from "./decoder.ts";
import { declareFeedForward, feedForward } from "./feed-forward.ts";
import { declareMixture, mixture, readMixture } from "./mixture.ts";
import { layersOf, type Pass } from "./model.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";
import { tensorValues } from "./weights.ts";

export class Llama extends Decoder {
  readonly #layers: readonly (DecoderLayer | MixtureLayer)[];

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "llama");
    const shape = readDecoderShape(reader);
    const routing = { scoring: "softmax", normalize: true } as const;
    const experts = readMixture(reader, routing, shape.feedForward);
    const divisors = tensorValues(file, "rope_freqs.weight");
    const rope = readRope(reader, { headWidth: shape.headWidth, pairs: "neighbours", divisors });
    const inner = experts === undefined ? shape.feedForward : 0;
    super(reader, {
      shape: { ...shape, feedForward: inner },
      mixture: experts,
      ropes: { frequencies: rope },
    });
    const { weights } = this;
    const { width } = this.config;
    this.#layers = this.layers((prefix) => {
      const attention = declareSelfAttention(weights, prefix, width, shape);
      return experts === undefined
        ? { attention, feedForward: declareFeedForward(weights, prefix, width, inner) }
        : { attention, mixture: declareMixture(weights, prefix, width, experts) };
    });
  }

  record(context: KernelContext, pass: Pass): void {
    const { epsilon } = this.shape;
    this.embed(context, pass);
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      this.attend(context, pass, { layer: layer.attention, cache: i, rope: "frequencies" });
      if ("mixture" in layer) mixture(context, pass, { layer: layer.mixture, epsilon });
      else feedForward(context, pass, { layer: layer.feedForward, epsilon });
    }
    this.readOut(context, pass);
  }
}
