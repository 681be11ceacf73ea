/**
 * SmolLM3 (Hugging Face 2025): Llama's blocks, and every fourth layer knows no positions (Yang et
 * al. 2025, arXiv 2501.18795).
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readDecoderShape, type DecoderLayer } from "./decoder.ts";
import { declareFeedForward, feedForward } from "./feed-forward.ts";
import { layersOf, type Pass } from "./model.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";

/** Files do not say it. */
const ropelessPeriod = 4;

export class Smollm3 extends Decoder {
  readonly #layers: readonly DecoderLayer[];

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "smollm3");
    const shape = readDecoderShape(reader);
    const rope = readRope(reader, { headWidth: shape.headWidth, pairs: "neighbours" });
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
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      const rope = (i + 1) % ropelessPeriod === 0 ? undefined : "frequencies";
      this.attend(context, pass, { layer: layer.attention, cache: i, rope });
      feedForward(context, pass, { layer: layer.feedForward, epsilon });
    }
    this.readOut(context, pass);
  }
}
