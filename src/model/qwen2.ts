/** Qwen2 and Qwen2.5 (Yang et al. 2024, arXiv 2407.10671): Llama's blocks with biases on QKV. */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readDecoderShape, type DecoderLayer } from "./decoder.ts";
import { declareFeedForward, feedForward } from "./feed-forward.ts";
import { layersOf, type Pass } from "./model.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";

export class Qwen2 extends Decoder {
  readonly #layers: readonly DecoderLayer[];

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "qwen2");
    const shape = readDecoderShape(reader);
    const rope = readRope(reader, { headWidth: shape.headWidth, pairs: "halves" });
    super(reader, { shape, ropes: { frequencies: rope } });
    const { width } = this.config;
    this.#layers = this.layers((prefix) => ({
      attention: declareSelfAttention(this.weights, prefix, width, shape, { biases: true }),
      feedForward: declareFeedForward(this.weights, prefix, width, shape.feedForward),
    }));
  }

  record(context: KernelContext, pass: Pass): void {
    const { epsilon } = this.shape;
    this.embed(context, pass);
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      this.attend(context, pass, { layer: layer.attention, cache: i, rope: "frequencies" });
      feedForward(context, pass, { layer: layer.feedForward, epsilon });
    }
    this.readOut(context, pass);
  }
}
