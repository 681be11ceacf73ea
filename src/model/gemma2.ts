/**
 * Gemma 2 (Gemma Team 2024, arXiv 2408.00118): every second layer sees a window, each block ends in
 * a norm as well, gates are GELU, scores and logits are softly capped.
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readDecoderShape, type DecoderLayer } from "./decoder.ts";
import { declareFeedForward, feedForward } from "./feed-forward.ts";
import { layersOf, type Pass } from "./model.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";

interface Layer extends DecoderLayer {
  readonly window: number | undefined;
}

/** Every second layer has a window, from the first on. */
const windowPeriod = 2;
/** Where a file does not say. */
const defaults = { window: 4096, attentionCap: 50, logitCap: 30 } as const;
/** Of the one size, 27B, whose scores are scaled by something else than the width of a head. */
const unusualLayerCount = 46;

export class Gemma2 extends Decoder {
  readonly #layers: readonly Layer[];
  readonly #logitCap: number;

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "gemma2");
    const shape = {
      ...readDecoderShape(reader),
      scale: gemmaScale(reader, unusualLayerCount),
      cap: reader.positive("attn_logit_softcapping", defaults.attentionCap),
    };
    const rope = readRope(reader, { headWidth: shape.headWidth, pairs: "halves" });
    super(reader, { shape, ropes: { frequencies: rope }, postNorms: true });
    this.#logitCap = reader.positive("final_logit_softcapping", defaults.logitCap);
    const { width, layerCount } = this.config;
    const windows = reader.windows(layerCount, windowPeriod, defaults.window);
    const norms = { postNorm: true };
    this.#layers = this.layers((prefix, i) => ({
      attention: declareSelfAttention(this.weights, prefix, width, shape, norms),
      feedForward: declareFeedForward(this.weights, prefix, width, shape.feedForward, norms),
      window: windows[i],
    }));
  }

  record(context: KernelContext, pass: Pass): void {
    const { epsilon } = this.shape;
    this.embed(context, pass, Math.sqrt(this.config.width));
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      const { attention, window } = layer;
      this.attend(context, pass, { layer: attention, cache: i, rope: "frequencies", window });
      feedForward(context, pass, { layer: layer.feedForward, epsilon, gateFunction: "gelu" });
    }
    this.readOut(context, pass, { cap: this.#logitCap });
  }
}

/** Files do not say by what scores are scaled; one size of Gemma 2 and one of Gemma 3 differ. */
export function gemmaScale(reader: ConfigReader, layerCount: number): number {
  const { heads, headWidth } = readDecoderShape(reader);
  const { width, layerCount: count } = reader.common();
  return 1 / Math.sqrt(count === layerCount ? Math.floor(width / heads) : headWidth);
}
