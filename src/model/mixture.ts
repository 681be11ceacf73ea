/**
 * Mixtures of experts as GGUF describes them: the keys of the router and the tensors of a block.
 * How scores become a choice is each architecture's own.
 */
import { expertsMax, expertsUsedMax, type Routing } from "../kernels/expert-choice.ts";
import { experts, expertsFloats, type ExpertWeights } from "../kernels/experts.ts";
import type { KernelContext } from "../kernels/kernel.ts";
import type { GateFunction } from "../kernels/gate.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { ConfigReader } from "./config.ts";
import { counterOf, scratchSlice, type Pass } from "./model.ts";
import type { Weights } from "./weights.ts";

export interface MixtureShape {
  readonly routing: Routing;
  /** Of the gates; SiLU by default. */
  readonly activation?: GateFunction;
  /** Width of one expert. */
  readonly feedForward: number;
  /** Width of the expert that takes every row; 0 without one. */
  readonly sharedFeedForward: number;
}

/** No model is near it. */
const feedForwardMax = 1 << 20;

/**
 * Reads the `expert_*` keys; undefined if the model is none. `fallback`: the width of an expert
 * where the file does not say.
 */
export function readMixture(
  reader: ConfigReader,
  choice: Pick<Routing, "scoring" | "normalize">,
  fallback?: number,
): MixtureShape | undefined {
  const experts = reader.optionalCount("expert_count", 1 << 16);
  if (experts === 0) return undefined;
  const used = reader.count("expert_used_count", experts);
  if (experts > expertsMax || used > expertsUsedMax) {
    throw reader.unsupported(
      `a mixture of ${used} of ${experts} experts, more than ${expertsUsedMax} of ${expertsMax},`,
    );
  }
  const feedForward = reader.count("expert_feed_forward_length", feedForwardMax, fallback);
  return {
    routing: { ...choice, experts, used, scale: reader.positive("expert_weights_scale", 1) },
    feedForward,
    sharedFeedForward: hasSharedExpert(reader)
      ? reader.optionalCount("expert_shared_feed_forward_length", feedForwardMax) ||
        denseFeedForward(reader) ||
        feedForward
      : 0,
  };
}

function hasSharedExpert({ file }: ConfigReader): boolean {
  return file.tensors.some(({ name }) => name.endsWith(".ffn_up_shexp.weight"));
}

/** Of blocks that are none; 0 if the file does not say, or not one for all. */
function denseFeedForward(reader: ConfigReader): number {
  const found = reader.metadata.get(`${reader.architecture}.feed_forward_length`);
  return found?.type === "numbers"
    ? 0
    : reader.optionalCount("feed_forward_length", feedForwardMax);
}

/** The same of an architecture that always is one. */
export function requireMixture(...args: Parameters<typeof readMixture>): MixtureShape {
  const [reader] = args;
  const shape = readMixture(...args);
  if (shape === undefined) {
    throw reader.bad(`metadata ${reader.architecture}.expert_count is missing or 0`);
  }
  return shape;
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
  { routing, activation, feedForward, sharedFeedForward }: MixtureShape,
): ExpertWeights {
  const { experts: count } = routing;
  const matrix = (name: string, rows: number, columns: number) =>
    weights.matrix(`${prefix}.${name}.weight`, rows, columns);
  const ofAll = (name: string, rows: number, columns: number) =>
    weights.experts(`${prefix}.${name}.weight`, count, rows, columns);
  const biasOfAll = (name: string, length: number) =>
    weights.optionalVector(`${prefix}.${name}.bias`, count * length, [length, count]);
  const has = (name: string) => weights.has(`${prefix}.${name}.weight`);
  return {
    routing,
    activation,
    router: matrix("ffn_gate_inp", count, width),
    routerBias: weights.optionalVector(`${prefix}.ffn_gate_inp.bias`, count),
    selectionBias: weights.optionalVector(`${prefix}.exp_probs_b.bias`, count),
    ...(has("ffn_gate_up_exps")
      ? {
          gate: ofAll("ffn_gate_up_exps", 2 * feedForward, width),
          gateBias: biasOfAll("ffn_gate_up_exps", 2 * feedForward),
        }
      : {
          gate: ofAll("ffn_gate_exps", feedForward, width),
          gateBias: biasOfAll("ffn_gate_exps", feedForward),
          up: ofAll("ffn_up_exps", feedForward, width),
          upBias: biasOfAll("ffn_up_exps", feedForward),
        }),
    down: ofAll("ffn_down_exps", width, feedForward),
    downBias: biasOfAll("ffn_down_exps", width),
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

/** A feed-forward block of experts. */
export interface Mixture {
  readonly norm: Vector;
  readonly experts: ExpertWeights;
}

export function declareMixture(
  weights: Weights,
  prefix: string,
  width: number,
  shape: MixtureShape,
  normName = "ffn_norm",
): Mixture {
  return {
    norm: weights.vector(`${prefix}.${normName}.weight`, width),
    experts: declareExperts(weights, prefix, width, shape),
  };
}

/** x += the chosen experts of norm(x), and the one that takes every row */
export function mixture(
  context: KernelContext,
  pass: Pass,
  { layer, epsilon }: { layer: Mixture; epsilon: number },
): void {
  const { step, rowCapacity, workspace, deterministic } = pass;
  experts(context, {
    x: scratchSlice(pass, "x"),
    norm: layer.norm,
    epsilon,
    weights: layer.experts,
    workspace,
    counter: counterOf(pass),
    step,
    rowCapacity,
    deterministic,
  });
}
