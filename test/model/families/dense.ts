/** Tiny models of the architectures with plain feed-forward blocks. */
import type { DType } from "../../../src/tensor/dtype.ts";
import { TinyModel } from "../../helpers/tiny-model.ts";
import { attention, feedForward, headNorms, plain, start, type Sizes } from "./parts.ts";

export function qwen2(): TinyModel {
  const sizes = { layers: 3, width: 128, heads: 2, kvHeads: 1, headWidth: 64 };
  return plain("qwen2", 2, sizes, { tied: true }, (model, prefix) =>
    model
      .bias(`${prefix}.attn_q.bias`, 128)
      .bias(`${prefix}.attn_k.bias`, 64)
      .bias(`${prefix}.attn_v.bias`, 64),
  );
}

export function qwen3(): TinyModel {
  const sizes = { layers: 3, width: 96, heads: 4, kvHeads: 1, headWidth: 128 };
  return plain("qwen3", 3, sizes, {}, (model, prefix) => headNorms(model, prefix, 128));
}

/** Factors for contexts up to `original` tokens, and others for longer ones. */
export function phi3(original: number): TinyModel {
  return fused({ layers: 3, width: 192, heads: 2, kvHeads: 1, headWidth: 96 }, "F32", false)
    .set({
      "rope.scaling.original_context_length": original,
      "rope.scaling.attn_factor": { float: 1.19 },
    })
    .between("rope_factors_long.weight", [48], 1, 40)
    .between("rope_factors_short.weight", [48], 1, 1.5);
}

/** Phi-3, whose products are fused; `twin`: with floats that are what this type holds. */
export function fused(sizes: Omit<Sizes, "feedForward">, type: DType, twin: boolean): TinyModel {
  const { layers, width, heads, kvHeads, headWidth } = sizes;
  const inner = width;
  const model = start("phi3", 6, { ...sizes, feedForward: inner }, { twin });
  for (let i = 0; i < layers; i++) {
    model
      .norm(`blk.${i}.attn_norm.weight`, width)
      .matrix(`blk.${i}.attn_qkv.weight`, (heads + 2 * kvHeads) * headWidth, width, type)
      .matrix(`blk.${i}.attn_output.weight`, width, heads * headWidth, type)
      .norm(`blk.${i}.ffn_norm.weight`, width)
      .matrix(`blk.${i}.ffn_up.weight`, 2 * inner, width, type)
      .matrix(`blk.${i}.ffn_down.weight`, width, inner, type);
  }
  return model;
}

export function mistral3(): TinyModel {
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

export function granite(): TinyModel {
  const sizes = { layers: 3, width: 160, heads: 2, kvHeads: 2, headWidth: 80 };
  return plain("granite", 8, sizes, { tied: true }).set({
    embedding_scale: { float: 12 },
    residual_scale: { float: 0.22 },
    "attention.scale": { float: 0.3 },
    logit_scale: { float: 8 },
  });
}

export function smollm3(): TinyModel {
  const sizes = { layers: 5, width: 128, heads: 2, kvHeads: 1, headWidth: 64 };
  return plain("smollm3", 9, sizes, { tied: true });
}

/** Three of four layers are convolutions; with `experts` all but the first layer have these. */
export function lfm2(seed: number, experts?: { count: number; used: number; inner: number }) {
  const [width, heads, kvHeads, headWidth, taps] = [128, 2, 1, 64, 3];
  const isAttention = [false, true, false, false, true];
  const sizes = { layers: isAttention.length, width, heads, kvHeads, headWidth };
  const architecture = experts === undefined ? "lfm2" : "lfm2moe";
  const model = new TinyModel(architecture, seed)
    .set({
      block_count: sizes.layers,
      embedding_length: width,
      feed_forward_length: 192,
      "attention.head_count": heads,
      "attention.head_count_kv": isAttention.map((is) => (is ? kvHeads : 0)),
      "attention.layer_norm_rms_epsilon": { float: 1e-5 },
      "rope.freq_base": { float: 1_000_000 },
      "shortconv.l_cache": taps,
      ...(experts && {
        leading_dense_block_count: 1,
        expert_count: experts.count,
        expert_used_count: experts.used,
        expert_feed_forward_length: experts.inner,
        expert_gating_func: 2,
      }),
    })
    .matrix("token_embd.weight", 320, width)
    .norm("token_embd_norm.weight", width);
  for (const [i, is] of isAttention.entries()) {
    const prefix = `blk.${i}`;
    if (is) headNorms(attention(model, prefix, sizes), prefix, headWidth);
    else {
      model
        .norm(`${prefix}.attn_norm.weight`, width)
        .matrix(`${prefix}.shortconv.in_proj.weight`, 3 * width, width)
        .matrix(`${prefix}.shortconv.conv.weight`, width, taps)
        .matrix(`${prefix}.shortconv.out_proj.weight`, width, width);
    }
    if (experts === undefined || i === 0) feedForward(model, prefix, width, 192);
    else {
      const { count, inner } = experts;
      model
        .norm(`${prefix}.ffn_norm.weight`, width)
        .matrix(`${prefix}.ffn_gate_inp.weight`, count, width)
        .matrices(`${prefix}.ffn_gate_exps.weight`, count, inner, width)
        .matrices(`${prefix}.ffn_up_exps.weight`, count, inner, width)
        .matrices(`${prefix}.ffn_down_exps.weight`, count, width, inner)
        .bias(`${prefix}.exp_probs_b.bias`, count, 0.2);
    }
  }
  return model;
}
