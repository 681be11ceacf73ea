/** The hyper-parameters of Qwen3.5: which block is what, and how wide. */
import { isDeltaWidth } from "../../kernels/gated-delta.ts";
import { convTapsMax } from "../../kernels/short-conv.ts";
import type { ConfigReader } from "../config.ts";
import { readMixture, type MixtureShape } from "../mixture.ts";

export interface Shape {
  readonly width: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  /** Of attention scores. */
  readonly scale: number;
  readonly delta: DeltaShape;
  /** Width of a dense feed-forward block, or what its experts are. */
  readonly feedForward: number | MixtureShape;
  readonly epsilon: number;
}

export interface DeltaShape {
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly headWidth: number;
  /** Values of all heads. */
  readonly valueWidth: number;
  /** What is convolved: queries, keys and values of all heads. */
  readonly channels: number;
  readonly taps: number;
  /** The order of heads in Qwen3-Next; converters of its heirs reorder them. */
  readonly grouped: boolean;
}

/** No model is near it. */
const widthMax = 1 << 20;
const headsMax = 4096;

/**
 * For each block whether it is a delta net. Blocks behind these, which predict further tokens, are
 * no part of the model's own output and are left out.
 */
export function readLayerKinds(reader: ConfigReader, blockCount: number): boolean[] {
  const extra = reader.optionalCount("nextn_predict_layers", blockCount - 1);
  const interval = reader.count("full_attention_interval", widthMax, 4);
  const flags = reader.optionalNumbers("attention.recurrent_layers");
  const layerCount = blockCount - extra;
  if (flags !== undefined && flags.length < layerCount) {
    throw reader.bad(`${flags.length} of ${layerCount} layers are said to be recurrent or not`);
  }
  return Array.from({ length: layerCount }, (_unused, i) =>
    flags === undefined ? (i + 1) % interval !== 0 : flags[i] !== 0,
  );
}

export function readShape(reader: ConfigReader, width: number): Shape {
  const { heads, kvHeads } = reader.heads();
  const headWidth = reader.count("attention.key_length", 512, Math.floor(width / heads));
  const valueWidth = reader.count("attention.value_length", 512, headWidth);
  if (headWidth % 8 !== 0 || valueWidth !== headWidth) {
    throw reader.unsupported(`attention heads of width ${headWidth} (values ${valueWidth})`);
  }
  // Probabilities of all experts, divided by the sum of those that are chosen.
  const mixture = readMixture(reader, { scoring: "softmax", normalize: true });
  return {
    width,
    heads,
    kvHeads,
    headWidth,
    scale: reader.positive("attention.scale", 1 / Math.sqrt(headWidth)),
    delta: readDeltaShape(reader),
    feedForward: mixture ?? reader.count("feed_forward_length", widthMax),
    epsilon: reader.positive("attention.layer_norm_rms_epsilon"),
  };
}

function readDeltaShape(reader: ConfigReader): DeltaShape {
  const keyHeads = reader.count("ssm.group_count", headsMax);
  const valueHeads = reader.count("ssm.time_step_rank", headsMax);
  const headWidth = reader.count("ssm.state_size", widthMax);
  const valueWidth = reader.count("ssm.inner_size", widthMax, valueHeads * headWidth);
  const taps = reader.count("ssm.conv_kernel", widthMax);
  if (valueHeads % keyHeads !== 0) {
    throw reader.bad(`${valueHeads} value heads cannot share ${keyHeads} key heads evenly`);
  }
  if (valueWidth !== valueHeads * headWidth || !isDeltaWidth(headWidth)) {
    throw reader.unsupported(
      `a state of ${headWidth} wide keys and ${valueWidth / valueHeads} wide values`,
    );
  }
  if (taps < 2 || taps > convTapsMax) throw reader.unsupported(`a convolution over ${taps} inputs`);
  return {
    keyHeads,
    valueHeads,
    headWidth,
    valueWidth,
    channels: 2 * keyHeads * headWidth + valueWidth,
    taps,
    grouped: reader.architecture === "qwen3next",
  };
}
