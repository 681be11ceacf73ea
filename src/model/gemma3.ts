/**
 * Gemma 3 (Gemma Team 2025, arXiv 2503.19786): Gemma 2 with norms of query and key heads in place
 * of caps; five layers of six see a window, with a rope of their own that is never stretched.
 */
import type { GgufFile } from "../gguf/file.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import { ConfigReader } from "./config.ts";
import { Decoder, readDecoderShape, type DecoderLayer } from "./decoder.ts";
import { declareFeedForward, feedForward } from "./feed-forward.ts";
import { gemmaScale } from "./gemma2.ts";
import { layersOf, type Pass } from "./model.ts";
import { readRope } from "./rope.ts";
import { declareSelfAttention } from "./self-attention.ts";

interface Layer extends DecoderLayer {
  readonly window: number | undefined;
}

const windowPeriod = 6;
const windowBase = 10_000;
/** Of the one size, 27B, whose scores are scaled by something else than the width of a head. */
const unusualLayerCount = 62;

export class Gemma3 extends Decoder {
  readonly #layers: readonly Layer[];
  readonly #logitCap: number | undefined;

  constructor(file: GgufFile) {
    const reader = new ConfigReader(file, "gemma3");
    const scale = gemmaScale(reader, unusualLayerCount);
    const shape = { ...readDecoderShape(reader), scale };
    const rope = { headWidth: shape.headWidth, pairs: "halves" } as const;
    const base = reader.positive("rope.freq_base_swa", windowBase);
    const ropes = {
      far: readRope(reader, rope),
      near: readRope(reader, { ...rope, base, stretched: false }),
    };
    super(reader, { shape, ropes, postNorms: true });
    this.#logitCap = reader.optionalPositive("final_logit_softcapping");
    const { width, layerCount } = this.config;
    const windows =
      reader.optionalPositive("attention.sliding_window") === undefined
        ? []
        : reader.windows(layerCount, windowPeriod);
    const attentionNorms = { headNorms: true, postNorm: true };
    const norms = { postNorm: true };
    this.#layers = this.layers((prefix, i) => ({
      attention: declareSelfAttention(this.weights, prefix, width, shape, attentionNorms),
      feedForward: declareFeedForward(this.weights, prefix, width, shape.feedForward, norms),
      window: windows[i],
    }));
  }

  record(context: KernelContext, pass: Pass): void {
    const { epsilon } = this.shape;
    this.embed(context, pass, Math.sqrt(this.config.width));
    for (const [i, layer] of layersOf(pass, this.#layers)) {
      const { attention, window } = layer;
      const rope = window === undefined ? "far" : "near";
      this.attend(context, pass, { layer: attention, cache: i, rope, window });
      feedForward(context, pass, { layer: layer.feedForward, epsilon, gateFunction: "gelu" });
    }
    this.readOut(context, pass, { cap: this.#logitCap });
  }
}
