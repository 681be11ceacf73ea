/**
 * Phi-3, Phi-3.5 and Phi-4-mini (Abdin et al. 2024, arXiv 2404.14219): Llama's blocks with fused
 * products; long contexts through LongRoPE, which has one set of factors for short and another for
 * long contexts. The window that some files name is not applied: llama.cpp does not either, and
 * converters wrote it for models that were trained without.
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readDecoderShape, type DecoderLayer } from "./decoder.ts";
import { declareFeedForward, feedForward } from "./feed-forward.ts";
import { layersOf, type Pass } from "./model.ts";
import { originalContext, readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";
import { tensorValues } from "./weights.ts";

export class Phi3 extends Decoder {
  readonly #layers: readonly DecoderLayer[];
  readonly #originalContext: number;

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "phi3");
    const shape = readDecoderShape(reader);
    const rope = (length: "short" | "long") =>
      readRope(reader, {
        headWidth: shape.headWidth,
        pairs: "halves",
        divisors: tensorValues(file, `rope_factors_${length}.weight`),
      });
    super(reader, { shape, ropes: { short: rope("short"), long: rope("long") } });
    this.#originalContext = originalContext(reader);
    const { width } = this.config;
    const { feedForward: inner } = shape;
    this.#layers = this.layers((prefix) => ({
      attention: declareSelfAttention(this.weights, prefix, width, shape),
      feedForward: declareFeedForward(this.weights, prefix, width, inner, { fused: true }),
    }));
  }

  record(context: KernelContext, pass: Pass): void {
    const { epsilon } = this.shape;
    // By the context that may come and not by the one at hand: keys in the cache stay as they are.
    const rope = pass.contextTokens > this.#originalContext ? "long" : "short";
    this.embed(context, pass);
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      this.attend(context, pass, { layer: layer.attention, cache: i, rope });
      feedForward(context, pass, { layer: layer.feedForward, epsilon });
    }
    this.readOut(context, pass);
  }
}
