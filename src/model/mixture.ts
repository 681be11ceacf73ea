/**
 * Mixtures of experts as GGUF describes them: the keys of the router and the tensors of a block.
 * How scores become a choice is each architecture's own.
 */
import { expertsMax, expertsUsedMax, type Routing } from "../kernels/expert-choice.ts";
import { expertsFloats, type ExpertWeights } from "../kernels/experts.ts";
import type { ConfigReader } from "./config.ts";
import type { Weights } from "./weights.ts";

export interface MixtureShape {
  readonly routing: Routing;
  /** Width of one expert. */
  readonly feedForward: number;
  /** Width of the expert that takes every row. */
  readonly sharedFeedForward: number;
}

/** No model is near it. */
const feedForwardMax = 1 << 20;

/** Reads the `expert_*` keys; undefined if the model is none. */
export function readMixture(
  reader: ConfigReader,
  choice: Pick<Routing, "scoring" | "normalize">,
): MixtureShape | undefined {
  const experts = reader.optionalCount("expert_count", 1 << 16);
  if (experts === 0) return undefined;
  const used = reader.count("expert_used_count", experts);
  if (experts > expertsMax || used > expertsUsedMax) {
    throw reader.unsupported(
      `${used} of ${experts} experts are more than ${expertsUsedMax} of ${expertsMax}`,
    );
  }
  const feedForward = reader.count("expert_feed_forward_length", feedForwardMax);
  return {
    routing: { ...choice, experts, used, scale: reader.positive("expert_weights_scale", 1) },
    feedForward,
    sharedFeedForward: reader.count(
      "expert_shared_feed_forward_length",
      feedForwardMax,
      reader.optionalCount("feed_forward_length", feedForwardMax) || feedForward,
    ),
  };
}

/** Floats of workspace a row that the blocks need. */
export function mixtureFloats(
  width: number,
  { routing, feedForward, sharedFeedForward }: MixtureShape,
): number {
  return expertsFloats({ ...routing, width, feedForward, sharedFeedForward });
}

/** Declares router and experts of a block; a shared expert and its switch if the file has them. */
export function declareExperts(
  weights: Weights,
  prefix: string,
  width: number,
  { routing, feedForward, sharedFeedForward }: MixtureShape,
): ExpertWeights {
  const { experts } = routing;
  const matrix = (name: string, rows: number, columns: number) =>
    weights.matrix(`${prefix}.${name}.weight`, rows, columns);
  const ofAll = (name: string, rows: number, columns: number) =>
    weights.experts(`${prefix}.${name}.weight`, experts, rows, columns);
  const has = (name: string) => weights.has(`${prefix}.${name}.weight`);
  return {
    routing,
    router: matrix("ffn_gate_inp", experts, width),
    selectionBias: weights.optionalVector(`${prefix}.exp_probs_b.bias`, experts),
    ...(has("ffn_gate_up_exps")
      ? { gate: ofAll("ffn_gate_up_exps", 2 * feedForward, width) }
      : {
          gate: ofAll("ffn_gate_exps", feedForward, width),
          up: ofAll("ffn_up_exps", feedForward, width),
        }),
    down: ofAll("ffn_down_exps", width, feedForward),
    shared: has("ffn_up_shexp")
      ? {
          gate: matrix("ffn_gate_shexp", sharedFeedForward, width),
          up: matrix("ffn_up_shexp", sharedFeedForward, width),
          down: matrix("ffn_down_shexp", width, sharedFeedForward),
          switch: has("ffn_gate_inp_shexp") ? matrix("ffn_gate_inp_shexp", 1, width) : undefined,
        }
      : undefined,
  };
}
