/**
 * A tiny model of each architecture, with everything switched on that the architecture has, in
 * sizes at which 64 tokens show it: windows of less, caps that bite, contexts that are stretched.
 */
import { TinyModel } from "../helpers/tiny-model.ts";

interface Sizes {
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  readonly feedForward: number;
}

/** By the name of the case, which starts with the architecture. */
export const families: Readonly<Record<string, () => TinyModel>> = {
  llama: () => plain("llama", 1, { layers: 3, width: 128, heads: 4, kvHeads: 2, headWidth: 32 }),
  qwen2,
  qwen3,
  gemma2,
  gemma3,
  "gemma4 large": gemma4Large,
  "gemma4 small": gemma4Small,
  "phi3 short": () => phi3(4096),
  "phi3 long": () => phi3(48),
  mistral3,
  granite,
  smollm3,
};

/** Tokens that each model is fed with. */
export function familyTokens(model: TinyModel): number[] {
  return Array.from(
    { length: 64 },
    (_unused, i) => (i * i * 7 + i * 31 + 5) % model.vocabularySize,
  );
}

/** The keys that all have, and embedding, final norm and head. */
function start(
  architecture: string,
  seed: number,
  sizes: Omit<Sizes, "feedForward"> & Partial<Sizes>,
  options: { tied?: boolean } = {},
): TinyModel {
  const { layers, width, heads, kvHeads, headWidth, feedForward = 2 * width } = sizes;
  const model = new TinyModel(architecture, seed)
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
function attention(model: TinyModel, prefix: string, sizes: Omit<Sizes, "feedForward">): TinyModel {
  const { width, heads, kvHeads, headWidth } = sizes;
  return model
    .norm(`${prefix}.attn_norm.weight`, width)
    .matrix(`${prefix}.attn_q.weight`, heads * headWidth, width)
    .matrix(`${prefix}.attn_k.weight`, kvHeads * headWidth, width)
    .matrix(`${prefix}.attn_v.weight`, kvHeads * headWidth, width)
    .matrix(`${prefix}.attn_output.weight`, width, heads * headWidth);
}

function headNorms(model: TinyModel, prefix: string, headWidth: number): TinyModel {
  return model
    .norm(`${prefix}.attn_q_norm.weight`, headWidth)
    .norm(`${prefix}.attn_k_norm.weight`, headWidth);
}

function feedForward(
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

/** Blocks of attention and feed-forward; `add` adds what an architecture has beyond them. */
function plain(
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

function qwen2(): TinyModel {
  const sizes = { layers: 3, width: 128, heads: 2, kvHeads: 1, headWidth: 64 };
  return plain("qwen2", 2, sizes, { tied: true }, (model, prefix) =>
    model
      .bias(`${prefix}.attn_q.bias`, 128)
      .bias(`${prefix}.attn_k.bias`, 64)
      .bias(`${prefix}.attn_v.bias`, 64),
  );
}

function qwen3(): TinyModel {
  const sizes = { layers: 3, width: 96, heads: 4, kvHeads: 1, headWidth: 128 };
  return plain("qwen3", 3, sizes, {}, (model, prefix) => headNorms(model, prefix, 128));
}

function postNorms(model: TinyModel, prefix: string, width: number): TinyModel {
  return model
    .norm(`${prefix}.post_attention_norm.weight`, width)
    .norm(`${prefix}.post_ffw_norm.weight`, width);
}

function gemma2(): TinyModel {
  const sizes = { layers: 4, width: 64, heads: 4, kvHeads: 2, headWidth: 256 };
  return plain("gemma2", 4, sizes, { tied: true }, (model, prefix) =>
    postNorms(model, prefix, 64),
  ).set({
    "attention.sliding_window": 13,
    attn_logit_softcapping: { float: 2 },
    final_logit_softcapping: { float: 3 },
  });
}

function gemma3(): TinyModel {
  const sizes = { layers: 7, width: 64, heads: 2, kvHeads: 1, headWidth: 64 };
  return plain("gemma3", 5, sizes, { tied: true }, (model, prefix) => {
    postNorms(model, prefix, 64);
    headNorms(model, prefix, 64);
  }).set({
    "attention.sliding_window": 11,
    "rope.scaling.type": "linear",
    "rope.scaling.factor": { float: 8 },
  });
}

interface Gemma4Layer {
  readonly kvHeads: number;
  readonly headWidth: number;
  readonly inner: number;
  /** None where keys stand in for them, or where there are no keys either. */
  readonly hasValues: boolean;
  readonly hasKeys?: boolean;
}

function gemma4(
  seed: number,
  width: number,
  heads: number,
  layers: readonly Gemma4Layer[],
  ownWidth = 0,
): TinyModel {
  const model = new TinyModel("gemma4", seed)
    .set({
      block_count: layers.length,
      embedding_length: width,
      feed_forward_length: layers.map(({ inner }) => inner),
      embedding_length_per_layer_input: ownWidth,
      "attention.head_count": heads,
      "attention.head_count_kv": layers.map(({ kvHeads }) => kvHeads),
      "attention.key_length": 512,
      "attention.value_length": 512,
      "attention.key_length_swa": 256,
      "attention.value_length_swa": 256,
      "attention.layer_norm_rms_epsilon": { float: 1e-5 },
      "attention.sliding_window": 12,
      "attention.sliding_window_pattern": layers.map(({ headWidth }) => headWidth === 256),
      "rope.dimension_count": 512,
      "rope.dimension_count_swa": 256,
      "rope.freq_base": { float: 1_000_000 },
      "rope.freq_base_swa": { float: 10_000 },
      final_logit_softcapping: { float: 3 },
    })
    .matrix("token_embd.weight", 320, width)
    .norm("output_norm.weight", width)
    // A quarter of the pairs turns, the others stay: divided by so much that nothing is left.
    .tensor(
      "rope_freqs.weight",
      [256],
      Float32Array.from({ length: 256 }, (_unused, i) => (i < 64 ? 1 : 1e30)),
    );
  for (const [i, layer] of layers.entries()) gemma4Layer(model, `blk.${i}`, width, heads, layer);
  return model;
}

function gemma4Layer(
  model: TinyModel,
  prefix: string,
  width: number,
  heads: number,
  layer: Gemma4Layer,
): void {
  const { kvHeads, headWidth, inner, hasValues, hasKeys = true } = layer;
  model
    .norm(`${prefix}.attn_norm.weight`, width)
    .matrix(`${prefix}.attn_q.weight`, heads * headWidth, width)
    // Scores are not scaled, so the norms must keep them small.
    .between(`${prefix}.attn_q_norm.weight`, [headWidth], 0.1, 0.4)
    .matrix(`${prefix}.attn_output.weight`, width, heads * headWidth);
  if (hasKeys) {
    model
      .matrix(`${prefix}.attn_k.weight`, kvHeads * headWidth, width)
      .between(`${prefix}.attn_k_norm.weight`, [headWidth], 0.1, 0.4);
  }
  if (hasValues) model.matrix(`${prefix}.attn_v.weight`, kvHeads * headWidth, width);
  feedForward(model, prefix, width, inner);
  postNorms(model, prefix, width).between(`${prefix}.layer_output_scale.weight`, [1], 0.5, 1.5);
}

/** As the large sizes: layers without a window have fewer heads of keys, which are values too. */
function gemma4Large(): TinyModel {
  const near = { kvHeads: 2, headWidth: 256, inner: 96, hasValues: true };
  const far = { kvHeads: 1, headWidth: 512, inner: 96, hasValues: false };
  return gemma4(10, 64, 4, [near, near, far, near, far]);
}

/** As the small sizes: layers that borrow a cache and are wider, and embeddings for each layer. */
function gemma4Small(): TinyModel {
  const near = { kvHeads: 1, headWidth: 256, inner: 64, hasValues: true };
  const far = { ...near, headWidth: 512 };
  const [nearer, farer] = [near, far].map((layer) => ({
    ...layer,
    inner: 128,
    hasKeys: false,
    hasValues: false,
  })) as [Gemma4Layer, Gemma4Layer];
  const layers = [near, near, far, near, far, nearer, farer, nearer];
  const [width, own] = [64, 32];
  const model = gemma4(11, width, 2, layers, own)
    .set({ "attention.shared_kv_layers": 3 })
    .matrix("per_layer_token_embd.weight", 320, own * layers.length)
    .matrix("per_layer_model_proj.weight", own * layers.length, width)
    .norm("per_layer_proj_norm.weight", own);
  for (let i = 0; i < layers.length; i++) {
    model
      .matrix(`blk.${i}.inp_gate.weight`, own, width)
      .matrix(`blk.${i}.proj.weight`, width, own)
      .norm(`blk.${i}.post_norm.weight`, width);
  }
  return model;
}

/** Factors for contexts up to `original` tokens, and others for longer ones. */
function phi3(original: number): TinyModel {
  const [layers, width, heads, kvHeads, headWidth, inner] = [3, 192, 2, 1, 96, 128];
  const sizes = { layers, width, heads, kvHeads, headWidth, feedForward: inner };
  const model = start("phi3", 6, sizes)
    .set({
      "rope.scaling.original_context_length": original,
      "rope.scaling.attn_factor": { float: 1.19 },
    })
    .between("rope_factors_long.weight", [headWidth / 2], 1, 40)
    .between("rope_factors_short.weight", [headWidth / 2], 1, 1.5);
  for (let i = 0; i < layers; i++) {
    model
      .norm(`blk.${i}.attn_norm.weight`, width)
      .matrix(`blk.${i}.attn_qkv.weight`, (heads + 2 * kvHeads) * headWidth, width)
      .matrix(`blk.${i}.attn_output.weight`, width, heads * headWidth)
      .norm(`blk.${i}.ffn_norm.weight`, width)
      .matrix(`blk.${i}.ffn_up.weight`, 2 * inner, width)
      .matrix(`blk.${i}.ffn_down.weight`, width, inner);
  }
  return model;
}

function mistral3(): TinyModel {
  const sizes = { layers: 3, width: 128, heads: 2, kvHeads: 1, headWidth: 128 };
  return plain("mistral3", 7, sizes).set({
    "attention.temperature_scale": { float: 0.6 },
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": { float: 16 },
    "rope.scaling.original_context_length": 24,
    "rope.scaling.attn_factor": { float: 1.1 },
    "rope.scaling.yarn_beta_fast": { float: 0.5 },
    "rope.scaling.yarn_beta_slow": { float: 0.05 },
    "rope.scaling.yarn_log_multiplier": { float: 0.5 },
  });
}

function granite(): TinyModel {
  const sizes = { layers: 3, width: 160, heads: 2, kvHeads: 2, headWidth: 80 };
  return plain("granite", 8, sizes, { tied: true }).set({
    embedding_scale: { float: 12 },
    residual_scale: { float: 0.22 },
    "attention.scale": { float: 0.3 },
    logit_scale: { float: 8 },
  });
}

function smollm3(): TinyModel {
  const sizes = { layers: 5, width: 128, heads: 2, kvHeads: 1, headWidth: 64 };
  return plain("smollm3", 9, sizes, { tied: true });
}
