/** What the tiny models are put together from. */
import { TinyModel } from "../../helpers/tiny-model.ts";

export interface Sizes {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  readonly feedForward: number;
}

/** The keys that all have, and embedding, final norm and head. */
export function start(
  architecture: string,
  seed: number,
  sizes: Omit<Sizes, "feedForward"> & Partial<Sizes>,
  options: { tied?: boolean; twin?: boolean } = {},
): TinyModel {
  const { layers, width, heads, kvHeads, headWidth, feedForward = 2 * width } = sizes;
  const model = new TinyModel(architecture, seed, 320, options.twin)
    .set({
      block_count: layers,
      embedding_length: width,
      feed_forward_length: feedForward,
      "attention.head_count": heads,
      "attention.head_count_kv": kvHeads,
      "attention.key_length": headWidth,
      "attention.value_length": headWidth,
      "attention.layer_norm_rms_epsilon": { float: 1e-5 },
      "rope.dimension_count": headWidth,
      "rope.freq_base": { float: 10_000 },
    })
    .matrix("token_embd.weight", 320, width)
    .norm("output_norm.weight", width);
  return options.tied === true ? model : model.matrix("output.weight", 320, width);
}

/** Attention with products of its own, without norms of heads. */
export function attention(
  model: TinyModel,
  prefix: string,
  sizes: Omit<Sizes, "feedForward">,
): TinyModel {
  const { width, heads, kvHeads, headWidth } = sizes;
  return model
    .norm(`${prefix}.attn_norm.weight`, width)
    .matrix(`${prefix}.attn_q.weight`, heads * headWidth, width)
    .matrix(`${prefix}.attn_k.weight`, kvHeads * headWidth, width)
    .matrix(`${prefix}.attn_v.weight`, kvHeads * headWidth, width)
    .matrix(`${prefix}.attn_output.weight`, width, heads * headWidth);
}

export function headNorms(model: TinyModel, prefix: string, headWidth: number): TinyModel {
  return model
    .norm(`${prefix}.attn_q_norm.weight`, headWidth)
    .norm(`${prefix}.attn_k_norm.weight`, headWidth);
}

export function feedForward(
  model: TinyModel,
  prefix: string,
  width: number,
  inner = 2 * width,
): TinyModel {
  return model
    .norm(`${prefix}.ffn_norm.weight`, width)
    .matrix(`${prefix}.ffn_gate.weight`, inner, width)
    .matrix(`${prefix}.ffn_up.weight`, inner, width)
    .matrix(`${prefix}.ffn_down.weight`, width, inner);
}

export function postNorms(model: TinyModel, prefix: string, width: number): TinyModel {
  return model
    .norm(`${prefix}.post_attention_norm.weight`, width)
    .norm(`${prefix}.post_ffw_norm.weight`, width);
}

/** Blocks of attention and feed-forward; `add` adds what an architecture has beyond them. */
export function plain(
  architecture: string,
  seed: number,
  sizes: Omit<Sizes, "feedForward">,
  options: { tied?: boolean } = {},
  add: (model: TinyModel, prefix: string) => void = () => {},
): TinyModel {
  const model = start(architecture, seed, sizes, options);
  for (let i = 0; i < sizes.layers; i++) {
    attention(model, `blk.${i}`, sizes);
    feedForward(model, `blk.${i}`, sizes.width);
    add(model, `blk.${i}`);
  }
  return model;
}
