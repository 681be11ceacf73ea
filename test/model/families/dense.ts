/** Tiny models of the architectures with plain feed-forward blocks. */
import type { TinyModel } from "../../helpers/tiny-model.ts";
import { headNorms, plain, start } from "./parts.ts";

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
