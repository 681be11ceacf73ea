/** Tiny models of the architectures that are mixtures of experts. */
import type { DType } from "../../../src/tensor/dtype.ts";
import type { TinyModel } from "../../helpers/tiny-model.ts";
import { attention, headNorms, start, type Sizes } from "./parts.ts";

interface Experts {
  readonly count: number;
  readonly used: number;
  readonly inner: number;
  /** Width of the expert that all rows take. */
  readonly shared?: number;
  readonly type?: DType;
  readonly twin?: boolean;
}

/** Attention, and experts in place of a feed-forward block. */
function experts(
  architecture: string,
  seed: number,
  sizes: Omit<Sizes, "feedForward">,
  { count, used, inner, shared, type = "F32", twin = false }: Experts,
  add: (model: TinyModel, prefix: string) => void = () => {},
): TinyModel {
  const { layers, width } = sizes;
  const model = start(architecture, seed, { ...sizes, feedForward: inner }, { twin }).set({
    expert_count: count,
    expert_used_count: used,
    expert_feed_forward_length: inner,
    ...(shared === undefined ? {} : { expert_shared_feed_forward_length: shared }),
  });
  for (let i = 0; i < layers; i++) {
    const prefix = `blk.${i}`;
    attention(model, prefix, sizes)
      .norm(
        `${prefix}.${architecture === "gpt-oss" ? "post_attention_norm" : "ffn_norm"}.weight`,
        width,
      )
      .matrix(`${prefix}.ffn_gate_inp.weight`, count, width)
      .matrices(`${prefix}.ffn_gate_exps.weight`, count, inner, width, type)
      .matrices(`${prefix}.ffn_up_exps.weight`, count, inner, width, type)
      .matrices(`${prefix}.ffn_down_exps.weight`, count, width, inner, type);
    if (shared !== undefined) {
      model
        .matrix(`${prefix}.ffn_gate_shexp.weight`, shared, width)
        .matrix(`${prefix}.ffn_up_shexp.weight`, shared, width)
        .matrix(`${prefix}.ffn_down_shexp.weight`, width, shared);
    }
    add(model, prefix);
  }
  return model;
}

export function mixtral(): TinyModel {
  const sizes = { layers: 3, width: 64, heads: 4, kvHeads: 2, headWidth: 32 };
  return experts("llama", 12, sizes, { count: 8, used: 2, inner: 96 });
}

export function granitemoe(): TinyModel {
  const sizes = { layers: 3, width: 64, heads: 4, kvHeads: 2, headWidth: 16 };
  return experts("granitemoe", 13, sizes, { count: 10, used: 3, inner: 32, shared: 64 }).set({
    embedding_scale: { float: 12 },
    residual_scale: { float: 0.22 },
    "attention.scale": { float: 0.3 },
    logit_scale: { float: 8 },
  });
}

export function qwen2moe(): TinyModel {
  const sizes = { layers: 3, width: 64, heads: 2, kvHeads: 2, headWidth: 32 };
  const sharing = { count: 12, used: 4, inner: 32, shared: 96 };
  return experts("qwen2moe", 14, sizes, sharing, (model, prefix) =>
    model
      .bias(`${prefix}.attn_q.bias`, 64)
      .bias(`${prefix}.attn_k.bias`, 64)
      .bias(`${prefix}.attn_v.bias`, 64)
      .bias(`${prefix}.ffn_gate_inp_shexp.weight`, 64, 0.1),
  );
}

export function qwen3moe(): TinyModel {
  const sizes = { layers: 3, width: 64, heads: 4, kvHeads: 2, headWidth: 64 };
  return experts("qwen3moe", 15, sizes, { count: 16, used: 4, inner: 48 }, (model, prefix) =>
    headNorms(model, prefix, 64),
  );
}

/** `twin`: with floats that are what experts of this type hold. */
export function gptOss(type: DType = "F32", twin = false): TinyModel {
  const [count, inner] = [8, 96];
  const sizes = { layers: 4, width: 96, heads: 4, kvHeads: 2, headWidth: 64 };
  const { width } = sizes;
  return experts("gpt-oss", 16, sizes, { count, used: 3, inner, type, twin }, (model, prefix) =>
    model
      .bias(`${prefix}.attn_q.bias`, 256)
      .bias(`${prefix}.attn_k.bias`, 128)
      .bias(`${prefix}.attn_v.bias`, 128)
      .bias(`${prefix}.attn_output.bias`, width)
      .bias(`${prefix}.attn_sinks.weight`, 4, 2)
      .bias(`${prefix}.ffn_gate_inp.bias`, count)
      .between(`${prefix}.ffn_gate_exps.bias`, [inner, count], -9, 9)
      .between(`${prefix}.ffn_up_exps.bias`, [inner, count], -9, 9)
      .between(`${prefix}.ffn_down_exps.bias`, [width, count], -1, 1),
  ).set({
    "attention.sliding_window": 10,
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": { float: 32 },
    "rope.scaling.original_context_length": 1000,
  });
}
