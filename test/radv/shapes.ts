/** The models whose kernels are compiled: real widths and types, few layers. */
import { kvTypeNames, type KvTypeName } from "../../src/kernels/kv-type.ts";
import { dtypes, type DType } from "../../src/tensor/dtype.ts";
import { HollowModel } from "./hollow-model.ts";

export interface ModelShape {
  readonly name: string;
  /** Row capacities of the programs that are recorded. */
  readonly rows: readonly number[];
  /** Types of the cache; halves by default. */
  readonly kvTypes?: readonly KvTypeName[];
  create(): HollowModel;
}

/** All buckets of the engine. */
const buckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** Types of the parts of a model, as common mixes give them. */
interface Mix {
  readonly embedding: DType;
  readonly head: DType;
  readonly matrix: DType;
  /** Of every other layer: values and the second half of the feed-forward. */
  readonly better: DType;
  readonly mixed: DType;
  readonly expert: DType;
  readonly expertDown: DType;
  readonly small: DType;
}

const q4kMedium: Mix = {
  embedding: "Q4_K",
  head: "Q6_K",
  matrix: "Q4_K",
  better: "Q6_K",
  mixed: "Q5_K",
  expert: "Q4_K",
  expertDown: "Q5_K",
  small: "Q8_0",
};

/** Q4_K for the experts alone, as dynamic quantizations of mixtures have it. */
const q8WithQ4kExperts: Mix = {
  embedding: "Q8_0",
  head: "Q8_0",
  matrix: "Q8_0",
  better: "Q8_0",
  mixed: "Q8_0",
  expert: "Q4_K",
  expertDown: "Q5_K",
  small: "Q8_0",
};

function pure(dtype: DType): Mix {
  const names = Object.keys(q4kMedium) as (keyof Mix)[];
  return Object.fromEntries(names.map((name) => [name, dtype])) as unknown as Mix;
}

export const modelShapes: readonly ModelShape[] = [
  { name: "llama 8B, Q4_K medium", rows: buckets, create: () => llama(q4kMedium) },
  {
    name: "qwen3.5 2B, Q4_K medium",
    rows: buckets,
    create: () => qwen35(q4kMedium, { heads: 8, valueHeads: 16, feedForward: 6144 }),
  },
  {
    name: "qwen3.5 35B-A3B, Q8_0 and Q4_K",
    rows: buckets,
    create: () => qwen35(q8WithQ4kExperts, { heads: 16, valueHeads: 32 }),
  },
  {
    name: "llama 8B, all caches",
    rows: [1, 8, 512],
    kvTypes: [...kvTypeNames, "q8_0,tq4"],
    create: () => llama(q4kMedium),
  },
  {
    name: "qwen3.5 2B, all caches",
    rows: [1, 8, 512],
    kvTypes: [...kvTypeNames, "q8_0,tq4"],
    create: () => qwen35(q4kMedium, { heads: 8, valueHeads: 16, feedForward: 6144 }),
  },
  ...dtypes.map((dtype) => ({
    name: `llama 8B, ${dtype}`,
    rows: [1, 8, 32, 512],
    create: () => llama(pure(dtype)),
  })),
];

function llama(mix: Mix): HollowModel {
  const [width, heads, kvHeads, headWidth, inner, vocabulary] = [4096, 32, 8, 128, 14336, 128256];
  const model = new HollowModel("llama", "llama 8B").set({
    block_count: 2,
    context_length: 131072,
    embedding_length: width,
    feed_forward_length: inner,
    vocab_size: vocabulary,
    "attention.head_count": heads,
    "attention.head_count_kv": kvHeads,
    "attention.layer_norm_rms_epsilon": { float: 1e-5 },
    "rope.dimension_count": headWidth,
    "rope.freq_base": { float: 500_000 },
  });
  addEnds(model, mix, width, vocabulary);
  for (const i of [0, 1]) {
    const better = i === 0 ? mix.better : mix.matrix;
    model
      .tensor(`blk.${i}.attn_norm.weight`, [width])
      .tensor(`blk.${i}.attn_q.weight`, [width, heads * headWidth], mix.matrix)
      .tensor(`blk.${i}.attn_k.weight`, [width, kvHeads * headWidth], mix.matrix)
      .tensor(`blk.${i}.attn_v.weight`, [width, kvHeads * headWidth], better)
      .tensor(`blk.${i}.attn_output.weight`, [heads * headWidth, width], mix.matrix)
      .tensor(`blk.${i}.ffn_norm.weight`, [width]);
    addFeedForward(model, `blk.${i}`, "", mix.matrix, better, width, inner);
  }
  return model;
}

interface QwenShape {
  readonly heads: number;
  readonly valueHeads: number;
  /** A mixture of experts without. */
  readonly feedForward?: number;
}

const stateWidth = 128;
const keyHeads = 16;
const experts = 256;
const expertWidth = 512;

/** Four layers: three delta nets and an attention. */
function qwen35(mix: Mix, { heads, valueHeads, feedForward }: QwenShape): HollowModel {
  const [width, headWidth, vocabulary] = [2048, 256, 248320];
  const isMixture = feedForward === undefined;
  const model = new HollowModel(isMixture ? "qwen35moe" : "qwen35", "qwen3.5").set({
    block_count: 4,
    context_length: 262144,
    embedding_length: width,
    vocab_size: vocabulary,
    "attention.head_count": heads,
    "attention.head_count_kv": 2,
    "attention.key_length": headWidth,
    "attention.value_length": headWidth,
    "attention.layer_norm_rms_epsilon": { float: 1e-6 },
    "rope.dimension_count": headWidth / 4,
    "rope.dimension_sections": [11, 11, 10, 0],
    "rope.freq_base": { float: 1e7 },
    full_attention_interval: 4,
    "ssm.conv_kernel": 4,
    "ssm.state_size": stateWidth,
    "ssm.group_count": keyHeads,
    "ssm.time_step_rank": valueHeads,
    "ssm.inner_size": valueHeads * stateWidth,
    ...(isMixture
      ? {
          expert_count: experts,
          expert_used_count: 8,
          expert_feed_forward_length: expertWidth,
          expert_shared_feed_forward_length: expertWidth,
        }
      : { feed_forward_length: feedForward }),
  });
  addEnds(model, mix, width, vocabulary);
  for (let i = 0; i < 4; i++) {
    const prefix = `blk.${i}`;
    const better = i % 2 === 0 ? mix.matrix : mix.better;
    model.tensor(`${prefix}.attn_norm.weight`, [width]);
    model.tensor(`${prefix}.post_attention_norm.weight`, [width]);
    if (i < 3) addDelta(model, mix, prefix, width, valueHeads);
    else addAttention(model, mix, prefix, width, heads);
    if (isMixture) addExperts(model, mix, prefix, width);
    else addFeedForward(model, prefix, "", mix.matrix, better, width, feedForward);
  }
  return model;
}

function addEnds(model: HollowModel, mix: Mix, width: number, vocabulary: number): void {
  model
    .tensor("token_embd.weight", [width, vocabulary], mix.embedding)
    .tensor("output_norm.weight", [width])
    .tensor("output.weight", [width, vocabulary], mix.head);
}

function addAttention(
  model: HollowModel,
  mix: Mix,
  prefix: string,
  width: number,
  heads: number,
): void {
  const [kvHeads, headWidth] = [2, 256];
  model
    .tensor(`${prefix}.attn_q.weight`, [width, 2 * heads * headWidth], mix.matrix)
    .tensor(`${prefix}.attn_k.weight`, [width, kvHeads * headWidth], mix.matrix)
    .tensor(`${prefix}.attn_v.weight`, [width, kvHeads * headWidth], mix.better)
    .tensor(`${prefix}.attn_q_norm.weight`, [headWidth])
    .tensor(`${prefix}.attn_k_norm.weight`, [headWidth])
    .tensor(`${prefix}.attn_output.weight`, [heads * headWidth, width], mix.matrix);
}

function addDelta(
  model: HollowModel,
  mix: Mix,
  prefix: string,
  width: number,
  valueHeads: number,
): void {
  const valueWidth = valueHeads * stateWidth;
  const channels = 2 * keyHeads * stateWidth + valueWidth;
  model
    .tensor(`${prefix}.attn_qkv.weight`, [width, channels], mix.mixed)
    .tensor(`${prefix}.attn_gate.weight`, [width, valueWidth], mix.matrix)
    .tensor(`${prefix}.ssm_conv1d.weight`, [4, channels])
    .tensor(`${prefix}.ssm_dt.bias`, [valueHeads])
    .tensor(`${prefix}.ssm_a`, [valueHeads])
    .tensor(`${prefix}.ssm_beta.weight`, [width, valueHeads], mix.small)
    .tensor(`${prefix}.ssm_alpha.weight`, [width, valueHeads], mix.small)
    .tensor(`${prefix}.ssm_norm.weight`, [stateWidth])
    .tensor(`${prefix}.ssm_out.weight`, [valueWidth, width], mix.matrix);
}

function addExperts(model: HollowModel, mix: Mix, prefix: string, width: number): void {
  const outward = [width, expertWidth, experts];
  model
    .tensor(`${prefix}.ffn_gate_inp.weight`, [width, experts])
    .tensor(`${prefix}.ffn_gate_exps.weight`, outward, mix.expert)
    .tensor(`${prefix}.ffn_up_exps.weight`, outward, mix.expert)
    .tensor(`${prefix}.ffn_down_exps.weight`, [expertWidth, width, experts], mix.expertDown)
    .tensor(`${prefix}.ffn_gate_inp_shexp.weight`, [width]);
  addFeedForward(model, prefix, "_shexp", mix.matrix, mix.matrix, width, expertWidth);
}

function addFeedForward(
  model: HollowModel,
  prefix: string,
  suffix: string,
  outward: DType,
  down: DType,
  width: number,
  inner: number,
): void {
  model
    .tensor(`${prefix}.ffn_gate${suffix}.weight`, [width, inner], outward)
    .tensor(`${prefix}.ffn_up${suffix}.weight`, [width, inner], outward)
    .tensor(`${prefix}.ffn_down${suffix}.weight`, [inner, width], down);
}
