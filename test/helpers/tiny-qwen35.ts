/** Qwen3.5 models of a few hundred kilobytes with random weights, of each of its architectures. */
import type { DType } from "../../src/tensor/dtype.ts";
import { TinyModel } from "./tiny-model.ts";

export interface TinyQwen35Options {
  readonly architecture: "qwen35" | "qwen35moe" | "qwen3next";
  readonly layers?: number;
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly headWidth?: number;
  readonly rotary?: number;
  readonly keyHeads?: number;
  readonly valueHeads?: number;
  readonly stateWidth?: number;
  readonly taps?: number;
  readonly experts?: number;
  readonly used?: number;
  /** Of the experts' matrices; one for the second of gate and up alone. */
  readonly expertType?: DType;
  readonly upType?: DType;
  /** Gate and up of the experts are one tensor. */
  readonly merged?: boolean;
  readonly shared?: boolean;
  readonly tied?: boolean;
  /** Blocks behind the model's own that predict further tokens. */
  readonly extra?: number;
  /** Which layers are recurrent, instead of three of four. */
  readonly recurrent?: readonly boolean[];
  readonly seed?: number;
}

type Shape = Required<Omit<TinyQwen35Options, "recurrent">>;

const width = 96;
const feedForward = 128;

const defaults = {
  layers: 5,
  heads: 4,
  kvHeads: 2,
  headWidth: 32,
  rotary: 8,
  keyHeads: 2,
  valueHeads: 4,
  stateWidth: 32,
  taps: 4,
  experts: 7,
  used: 3,
  expertType: "F32",
  merged: false,
  shared: true,
  tied: false,
  extra: 0,
  seed: 1,
} as const;

export function tinyQwen35(options: TinyQwen35Options): TinyModel {
  const { expertType = defaults.expertType } = options;
  const shape: Shape = { ...defaults, upType: expertType, ...options };
  const { architecture, layers, extra, seed } = shape;
  const recurrent = options.recurrent ?? Array.from({ length: layers }, (_, i) => i % 4 !== 3);
  const model = new TinyModel(architecture, seed, 160);
  describe(model, shape);
  if (options.recurrent !== undefined) {
    const flags = [...recurrent, ...Array.from({ length: extra }, () => false)];
    model.set({ "attention.recurrent_layers": flags });
  }
  model.tensor("token_embd.weight", [width, 160], embeddings(seed));
  recurrent.forEach((isRecurrent, i) => addBlock(model, shape, `blk.${i}`, isRecurrent));
  for (let i = layers; i < layers + extra; i++) addExtra(model, shape, `blk.${i}`);
  model.norm("output_norm.weight", width);
  return shape.tied ? model : model.matrix("output.weight", 160, width);
}

function describe(model: TinyModel, shape: Shape): void {
  const { layers, extra, stateWidth, valueHeads, architecture } = shape;
  model.set({
    block_count: layers + extra,
    embedding_length: width,
    feed_forward_length: feedForward,
    "attention.head_count": shape.heads,
    "attention.head_count_kv": shape.kvHeads,
    "attention.key_length": shape.headWidth,
    "attention.value_length": shape.headWidth,
    "attention.layer_norm_rms_epsilon": { float: 1e-6 },
    "rope.dimension_count": shape.rotary,
    "rope.freq_base": { float: 10_000 },
    full_attention_interval: 4,
    "ssm.conv_kernel": shape.taps,
    "ssm.state_size": stateWidth,
    "ssm.group_count": shape.keyHeads,
    "ssm.time_step_rank": valueHeads,
    "ssm.inner_size": valueHeads * stateWidth,
  });
  // Sections that no text may notice.
  const [first, second] = [Math.ceil(shape.rotary / 4), Math.floor(shape.rotary / 8)];
  if (architecture !== "qwen3next")
    model.set({ "rope.dimension_sections": [first, second, shape.rotary / 2 - first - second, 0] });
  if (extra > 0) model.set({ nextn_predict_layers: extra });
  if (architecture === "qwen35") return;
  model.set({
    expert_count: shape.experts,
    expert_used_count: shape.used,
    expert_feed_forward_length: 64,
    expert_shared_feed_forward_length: 64,
  });
}

function addBlock(model: TinyModel, shape: Shape, prefix: string, isRecurrent: boolean): void {
  model.norm(`${prefix}.attn_norm.weight`, width);
  if (isRecurrent) addDelta(model, shape, prefix);
  else addAttention(model, shape, prefix);
  model.norm(`${prefix}.post_attention_norm.weight`, width);
  if (shape.architecture !== "qwen35") {
    addExperts(model, shape, prefix);
    return;
  }
  model.matrix(`${prefix}.ffn_gate.weight`, feedForward, width);
  model.matrix(`${prefix}.ffn_up.weight`, feedForward, width);
  model.matrix(`${prefix}.ffn_down.weight`, width, feedForward);
}

function addAttention(model: TinyModel, shape: Shape, prefix: string): void {
  const { heads, kvHeads, headWidth } = shape;
  model.matrix(`${prefix}.attn_q.weight`, 2 * heads * headWidth, width);
  model.matrix(`${prefix}.attn_k.weight`, kvHeads * headWidth, width);
  model.matrix(`${prefix}.attn_v.weight`, kvHeads * headWidth, width);
  model.norm(`${prefix}.attn_q_norm.weight`, headWidth);
  model.norm(`${prefix}.attn_k_norm.weight`, headWidth);
  model.matrix(`${prefix}.attn_output.weight`, width, heads * headWidth);
}

function addDelta(model: TinyModel, shape: Shape, prefix: string): void {
  const { keyHeads, valueHeads, stateWidth, taps, architecture } = shape;
  const valueWidth = valueHeads * stateWidth;
  const channels = 2 * keyHeads * stateWidth + valueWidth;
  model.matrix(`${prefix}.attn_qkv.weight`, channels, width);
  model.matrix(`${prefix}.attn_gate.weight`, valueWidth, width);
  model.between(`${prefix}.ssm_conv1d.weight`, [taps, channels], -0.8, 0.8);
  if (architecture === "qwen3next") {
    model.matrix(`${prefix}.ssm_ba.weight`, 2 * valueHeads, width);
  } else {
    model.matrix(`${prefix}.ssm_beta.weight`, valueHeads, width);
    model.matrix(`${prefix}.ssm_alpha.weight`, valueHeads, width);
  }
  model.between(`${prefix}.ssm_dt.bias`, [valueHeads], -2, 2);
  model.between(`${prefix}.ssm_a`, [valueHeads], -4, -0.05);
  model.norm(`${prefix}.ssm_norm.weight`, stateWidth);
  model.matrix(`${prefix}.ssm_out.weight`, width, valueWidth);
}

function addExperts(model: TinyModel, shape: Shape, prefix: string): void {
  const { expertType, upType, merged, shared } = shape;
  // Larger mixtures are refused before anyone looks at their tensors.
  const experts = Math.min(shape.experts, 32);
  // Logits that differ enough for a router to be sure.
  model.between(`${prefix}.ffn_gate_inp.weight`, [width, experts], -0.6, 0.6);
  if (merged) {
    model.matrices(`${prefix}.ffn_gate_up_exps.weight`, experts, 128, width, expertType);
  } else {
    model.matrices(`${prefix}.ffn_gate_exps.weight`, experts, 64, width, expertType);
    model.matrices(`${prefix}.ffn_up_exps.weight`, experts, 64, width, upType);
  }
  model.matrices(`${prefix}.ffn_down_exps.weight`, experts, width, 64, expertType);
  if (!shared) return;
  model.between(`${prefix}.ffn_gate_inp_shexp.weight`, [width], -0.2, 0.2);
  model.matrix(`${prefix}.ffn_gate_shexp.weight`, 64, width);
  model.matrix(`${prefix}.ffn_up_shexp.weight`, 64, width);
  model.matrix(`${prefix}.ffn_down_shexp.weight`, width, 64);
}

/** A block that no forward pass may meet: its attention is whole, so that it could be run. */
function addExtra(model: TinyModel, shape: Shape, prefix: string): void {
  addBlock(model, shape, prefix, false);
  model.matrix(`${prefix}.nextn.eh_proj.weight`, width, 2 * width);
  model.norm(`${prefix}.nextn.enorm.weight`, width);
  model.norm(`${prefix}.nextn.hnorm.weight`, width);
  model.norm(`${prefix}.nextn.shared_head_norm.weight`, width);
}

function embeddings(seed: number): Float32Array {
  return Float32Array.from({ length: 160 * width }, (_, i) => 2 * Math.sin(seed + i * (i % 97)));
}
