/** The hyper-parameters of Gemma 4: the heads of each layer, and whose cache it reads. */
import type { ConfigReader } from "../config.ts";
import type { DecoderShape } from "../decoder.ts";
import { readMixture, type MixtureShape } from "../mixture.ts";

export interface Gemma4Config {
  readonly layers: readonly { shape: DecoderShape; window: number | undefined }[];
  /** Layers that have a cache of their own; the others follow. */
  readonly cacheCount: number;
  /** Of the embedding that each layer has for itself; 0 without. */
  readonly embeddingWidth: number;
  readonly experts: MixtureShape | undefined;
}

/** Where a file does not say which layers have a window. */
const windowPeriod = 6;

export function readGemma4(reader: ConfigReader): Gemma4Config {
  const { layerCount, width } = reader.common();
  const perLayer = (key: string, max: number) => reader.counts(key, layerCount, { min: 1, max });
  const heads = perLayer("attention.head_count", 4096);
  const kvHeads = perLayer("attention.head_count_kv", 4096);
  const inner = perLayer("feed_forward_length", 1 << 20);
  const headWidth = reader.count("attention.key_length", 512);
  const windowHeadWidth = reader.count("attention.key_length_swa", 512, headWidth);
  const epsilon = reader.positive("attention.layer_norm_rms_epsilon");
  const layers = reader.windows(layerCount, windowPeriod).map((window, i) => ({
    window,
    shape: {
      heads: heads[i] ?? 1,
      kvHeads: kvHeads[i] ?? 1,
      headWidth: window === undefined ? headWidth : windowHeadWidth,
      feedForward: inner[i] ?? width,
      epsilon,
      scale: 1,
      normValue: true,
    },
  }));
  const cacheCount = layerCount - reader.optionalCount("attention.shared_kv_layers", layerCount);
  checkLenders(reader, layers, cacheCount);
  const embeddingWidth = reader.optionalCount("embedding_length_per_layer_input", 1 << 16);
  const mixture = readMixture(reader, { scoring: "softmax", normalize: true });
  const experts = mixture && { ...mixture, activation: "gelu" as const };
  return { layers, cacheCount, embeddingWidth, experts };
}

/** The cache that a layer writes, or reads: then it is that of the last of its kind with one. */
export function cacheOf(index: number, window: number | undefined, cacheCount: number): number {
  // Those that have one end with both kinds.
  return index < cacheCount ? index : cacheCount - (window === undefined ? 1 : 2);
}

function checkLenders(
  reader: ConfigReader,
  layers: Gemma4Config["layers"],
  cacheCount: number,
): void {
  for (const [i, { shape, window }] of layers.entries()) {
    const lender = layers[cacheOf(i, window, cacheCount)];
    const fits =
      shape.heads % shape.kvHeads === 0 &&
      shape.headWidth % 8 === 0 &&
      lender?.window === window &&
      lender?.shape.kvHeads === shape.kvHeads;
    if (!fits) throw reader.bad(`the attention heads of layer ${i} do not fit its cache`);
  }
}

/** What activations of all layers fit into. */
export function largest(shapes: readonly DecoderShape[], embeddingWidth: number): DecoderShape {
  const most = (of: (shape: DecoderShape) => number) => Math.max(...shapes.map(of));
  return {
    heads: most((shape) => shape.heads),
    kvHeads: most((shape) => shape.kvHeads),
    headWidth: most((shape) => shape.headWidth),
    feedForward: Math.max(
      embeddingWidth,
      most((shape) => shape.feedForward),
    ),
    epsilon: shapes[0]?.epsilon ?? 0,
    scale: 1,
  };
}
