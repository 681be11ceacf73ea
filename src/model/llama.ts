/**
 * Llama (Touvron et al. 2023; Grattafiori et al. 2024), and with it Mistral: pre-norm blocks of
 * grouped-query attention with rotary embedding and a SwiGLU feed-forward.
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readDecoderShape, type DecoderLayer } from "./decoder.ts";
import { declareFeedForward, feedForward } from "./feed-forward.ts";
import type { Pass } from "./model.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";
import { tensorValues } from "./weights.ts";

export class Llama extends Decoder {
  readonly #layers: readonly DecoderLayer[];

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "llama");
    if (reader.optionalCount("expert_count", 4096) > 0) {
      throw reader.bad("a mixture of experts in architecture llama is not supported");
    }
    const shape = readDecoderShape(reader);
    const divisors = tensorValues(file, "rope_freqs.weight");
    const rope = readRope(reader, { headWidth: shape.headWidth, pairs: "neighbours", divisors });
    super(reader, { shape, ropes: { frequencies: rope } });
    const { width } = this.config;
    this.#layers = this.layers((prefix) => ({
      attention: declareSelfAttention(this.weights, prefix, width, shape),
      feedForward: declareFeedForward(this.weights, prefix, width, shape.feedForward),
    }));
  }

  record(context: KernelContext, pass: Pass): void {
    const { epsilon } = this.shape;
    this.embed(context, pass);
    for (const [i, layer] of this.#layers.entries()) {
      this.attend(context, pass, { layer: layer.attention, cache: i, rope: "frequencies" });
      feedForward(context, pass, { layer: layer.feedForward, epsilon });
    }
    this.readOut(context, pass);
  }
}
