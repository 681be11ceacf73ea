/**
 * Qwen1.5 and Qwen2 as mixtures of experts (Yang et al. 2024, arXiv 2407.10671): the attention of
 * Qwen2; the router's probabilities weigh the experts as they are, and one more expert takes every
 * row, to a share that the row decides.
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readMixtureDecoderShape, type MixtureLayer } from "./decoder.ts";
import { declareMixture, mixture, requireMixture } from "./mixture.ts";
import { layersOf, type Pass } from "./model.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";

export class Qwen2moe extends Decoder {
  readonly #layers: readonly MixtureLayer[];

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "qwen2moe");
    const shape = readMixtureDecoderShape(reader);
    // Old files tell only what the chosen experts are wide together.
    const together = reader.optionalCount("feed_forward_length", 1 << 20);
    const alone = Math.floor(together / reader.count("expert_used_count", 1 << 16));
    const routing = { scoring: "softmax", normalize: false } as const;
    const experts = requireMixture(reader, routing, alone > 0 ? alone : undefined);
    const rope = readRope(reader, { headWidth: shape.headWidth, pairs: "halves" });
    super(reader, { shape, mixture: experts, ropes: { frequencies: rope } });
    const { width } = this.config;
    this.#layers = this.layers((prefix) => ({
      attention: declareSelfAttention(this.weights, prefix, width, shape, { biases: true }),
      mixture: declareMixture(this.weights, prefix, width, experts),
    }));
  }

  record(context: KernelContext, pass: Pass): void {
    const { epsilon } = this.shape;
    this.embed(context, pass);
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      this.attend(context, pass, { layer: layer.attention, cache: i, rope: "frequencies" });
      mixture(context, pass, { layer: layer.mixture, epsilon });
    }
    this.readOut(context, pass);
  }
}
