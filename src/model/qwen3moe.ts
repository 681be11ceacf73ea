/**
 * Qwen3 as a mixture of experts (Yang et al. 2025, arXiv 2505.09388): its attention, and of many
 * small experts the few that the router prefers, weighted by their share of the probability.
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readMixtureDecoderShape, type MixtureLayer } from "./decoder.ts";
import { declareMixture, mixture, requireMixture } from "./mixture.ts";
import { layersOf, type Pass } from "./model.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";

export class Qwen3moe extends Decoder {
  readonly #layers: readonly MixtureLayer[];

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "qwen3moe");
    const shape = readMixtureDecoderShape(reader);
    const experts = requireMixture(reader, { scoring: "softmax", normalize: true });
    const rope = readRope(reader, { headWidth: shape.headWidth, pairs: "halves" });
    super(reader, { shape, mixture: experts, ropes: { frequencies: rope } });
    const { width } = this.config;
    this.#layers = this.layers((prefix) => ({
      attention: declareSelfAttention(this.weights, prefix, width, shape, { headNorms: true }),
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
