/** Tiny models of the Gemma family. */
import { TinyModel } from "../../helpers/tiny-model.ts";
import { feedForward, headNorms, plain, postNorms } from "./parts.ts";

export function gemma(): TinyModel {
  const sizes = { layers: 3, width: 64, heads: 2, kvHeads: 1, headWidth: 256 };
  return plain("gemma", 20, sizes, { tied: true });
}

export function gemma2(): TinyModel {
  const sizes = { layers: 4, width: 64, heads: 4, kvHeads: 2, headWidth: 256 };
  return plain("gemma2", 4, sizes, { tied: true }, (model, prefix) =>
    postNorms(model, prefix, 64),
  ).set({
    "attention.sliding_window": 13,
    attn_logit_softcapping: { float: 2 },
    final_logit_softcapping: { float: 3 },
  });
}

export function gemma3(): TinyModel {
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
export function gemma4Large(): TinyModel {
  const near = { kvHeads: 2, headWidth: 256, inner: 96, hasValues: true };
  const far = { kvHeads: 1, headWidth: 512, inner: 96, hasValues: false };
  return gemma4(10, 64, 4, [near, near, far, near, far]);
}

/** As the small sizes: layers that borrow a cache and are wider, and embeddings for each layer. */
export function gemma4Small(): TinyModel {
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

/** As the size that is a mixture of experts: they stand beside a plain block. */
export function gemma4Mixture(): TinyModel {
  const near = { kvHeads: 2, headWidth: 256, inner: 64, hasValues: true };
  const far = { kvHeads: 1, headWidth: 512, inner: 64, hasValues: false };
  const [width, count, inner] = [64, 12, 32];
  const layers = [near, near, far];
  const model = gemma4(17, width, 2, layers).set({
    expert_count: count,
    expert_used_count: 3,
    expert_feed_forward_length: inner,
  });
  for (let i = 0; i < layers.length; i++) {
    model
      // The router's input is divided by the root of the width.
      .between(`blk.${i}.ffn_gate_inp.scale`, [width], 5, 12)
      .matrix(`blk.${i}.ffn_gate_inp.weight`, count, width)
      .norm(`blk.${i}.pre_ffw_norm_2.weight`, width)
      .norm(`blk.${i}.post_ffw_norm_1.weight`, width)
      .norm(`blk.${i}.post_ffw_norm_2.weight`, width)
      .matrices(`blk.${i}.ffn_gate_up_exps.weight`, count, 2 * inner, width)
      .matrices(`blk.${i}.ffn_down_exps.weight`, count, width, inner)
      .norm(`blk.${i}.ffn_down_exps.scale`, count);
  }
  return model;
}
