/**
 * Granite 3 and 4 (IBM 2024), dense or as a mixture of experts: Llama's blocks with a factor on the
 * embedding, on each block's result, on attention scores and on logits (as muP has it, Yang et al.
 * 2022, arXiv 2203.03466).
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

export class Granite extends Decoder {
  readonly #layers: readonly (DecoderLayer | MixtureLayer)[];
  readonly #embeddingScale: number;
  readonly #logitFactor: number;
  /** Some are trained without telling positions at all. */
  readonly #rope: "frequencies" | undefined;

  constructor(file: GgufFile) {
    const reader = new ConfigReader(
      file,
      file.metadata.string("general.architecture") ?? "granite",
    );
    const residualScale = reader.optionalPositive("residual_scale") ?? 1;
    const known = readDecoderShape(reader);
    // The stream x is kept as x / r, r being the factor on each block's result: then blocks add
    // what they give as it is. All that reads the stream is a norm, for which
    // r · x / sqrt(mean((r · x)²) + ε) = x / sqrt(mean(x²) + ε / r²).
    const shape = { ...known, epsilon: known.epsilon / residualScale ** 2 };
    const divisors = tensorValues(file, "rope_freqs.weight");
    const rope = readRope(reader, { headWidth: shape.headWidth, pairs: "neighbours", divisors });
    const routing = { scoring: "softmax", normalize: true } as const;
    const experts = readMixture(reader, routing, shape.feedForward);
    const inner = experts === undefined ? shape.feedForward : 0;
    super(reader, {
      shape: { ...shape, feedForward: inner },
      mixture: experts,
      ropes: { frequencies: rope },
    });
    this.#embeddingScale = (reader.optionalPositive("embedding_scale") ?? 1) / residualScale;
    this.#logitFactor = 1 / reader.positive("logit_scale");
    this.#rope =
      reader.optionalFlag("rope.scaling.finetuned") === false ? undefined : "frequencies";
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
    this.embed(context, pass, this.#embeddingScale);
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      this.attend(context, pass, { layer: layer.attention, cache: i, rope: this.#rope });
      if ("mixture" in layer) mixture(context, pass, { layer: layer.mixture, epsilon });
      else feedForward(context, pass, { layer: layer.feedForward, epsilon });
    }
    this.readOut(context, pass, { factor: this.#logitFactor });
  }
}
