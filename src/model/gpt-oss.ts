/**
 * gpt-oss (OpenAI 2025, arXiv 2508.10925): mixtures of experts with biases everywhere and a gate
 * that clamps; every second layer sees a window; each head has a sink, a score that takes its share
 * of the attention and gives nothing.
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readMixtureDecoderShape, type MixtureLayer } from "./decoder.ts";
import { declareMixture, mixture, requireMixture } from "./mixture.ts";
import { layersOf, type Pass } from "./model.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";

interface Layer extends MixtureLayer {
  readonly window: number | undefined;
}

/** Every second layer has a window, from the first on. */
const windowPeriod = 2;

export class GptOss extends Decoder {
  readonly #layers: readonly Layer[];

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "gpt-oss");
    const shape = readMixtureDecoderShape(reader);
    const experts = {
      ...requireMixture(reader, { scoring: "softmax of the chosen", normalize: false }),
      activation: "clamped",
    } as const;
    const rope = readRope(reader, { headWidth: shape.headWidth, pairs: "halves" });
    super(reader, { shape, mixture: experts, ropes: { frequencies: rope } });
    const { width, layerCount } = this.config;
    const windows = reader.windows(layerCount, windowPeriod);
    const extras = { biases: true, sinks: true };
    this.#layers = this.layers((prefix, i) => ({
      attention: declareSelfAttention(this.weights, prefix, width, shape, extras),
      mixture: declareMixture(this.weights, prefix, width, experts, "post_attention_norm"),
      window: windows[i],
    }));
  }

  record(context: KernelContext, pass: Pass): void {
    const { epsilon } = this.shape;
    this.embed(context, pass);
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      const { attention, window } = layer;
      this.attend(context, pass, { layer: attention, cache: i, rope: "frequencies", window });
      mixture(context, pass, { layer: layer.mixture, epsilon });
    }
    this.readOut(context, pass);
  }
}
