/**
 * Mistral's models since Ministral 3 and Devstral 2 (Mistral AI 2025): Llama's blocks, YaRN, and
 * queries that grow with their position. Older Mistral models are of architecture llama.
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import type { Temperature } from "../kernels/rope-cache.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readDecoderShape, type DecoderLayer } from "./decoder.ts";
import { declareFeedForward, feedForward } from "./feed-forward.ts";
import { layersOf, type Pass } from "./model.ts";
import { originalContext, readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";
import { tensorValues } from "./weights.ts";

export class Mistral3 extends Decoder {
  readonly #layers: readonly DecoderLayer[];
  readonly #temperature: Temperature | undefined;

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "mistral3");
    if (reader.optionalCount("expert_count", 4096) > 0) {
      throw reader.unsupported("a mixture of experts");
    }
    const shape = readDecoderShape(reader);
    const divisors = tensorValues(file, "rope_freqs.weight");
    const rope = readRope(reader, { headWidth: shape.headWidth, pairs: "neighbours", divisors });
    super(reader, { shape, ropes: { frequencies: rope } });
    const scale = reader.optionalPositive("attention.temperature_scale");
    this.#temperature = scale === undefined ? undefined : { scale, span: originalContext(reader) };
    const { width } = this.config;
    this.#layers = this.layers((prefix) => ({
      attention: declareSelfAttention(this.weights, prefix, width, shape),
      feedForward: declareFeedForward(this.weights, prefix, width, shape.feedForward),
    }));
  }

  record(context: KernelContext, pass: Pass): void {
    const { epsilon } = this.shape;
    const shared = { rope: "frequencies", temperature: this.#temperature };
    this.embed(context, pass);
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      this.attend(context, pass, { layer: layer.attention, cache: i, ...shared });
      feedForward(context, pass, { layer: layer.feedForward, epsilon });
    }
    this.readOut(context, pass);
  }
}
