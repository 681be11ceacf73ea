/** From the fields of a request to what the engine is asked for. */
import { freshSeed } from "../engine/sampler.ts";
import { defaultSampling } from "../engine/sampling.ts";
import type { Work } from "./protocol.ts";
import type { SamplingRequest } from "./schema/field.ts";

/** What the server takes where a request says nothing. */
export interface SamplingDefaults {
  readonly temperature?: number | undefined;
  readonly topK?: number | undefined;
  readonly topP?: number | undefined;
  readonly minP?: number | undefined;
  readonly repeatPenalty?: number | undefined;
}

export function samplingOf(request: SamplingRequest, defaults: SamplingDefaults): Work["sampling"] {
  const { temperature, top_p, top_k, min_p, seed, logit_bias: bias = {} } = request;
  const { repeat_penalty, repetition_penalty, presence_penalty, frequency_penalty } = request;
  return {
    temperature: temperature ?? defaults.temperature,
    // Nothing is less than the best token alone.
    topP: top_p === 0 ? Number.MIN_VALUE : (top_p ?? defaults.topP),
    topK: top_k === -1 ? 0 : (top_k ?? defaults.topK),
    minP: min_p ?? defaults.minP,
    repeatPenalty: repeat_penalty ?? repetition_penalty ?? defaults.repeatPenalty,
    presencePenalty: presence_penalty,
    frequencyPenalty: frequency_penalty,
    seed: seed === undefined ? undefined : Math.abs(seed),
    logitBias: new Map(Object.entries(bias).map(([id, value]) => [Number(id), value])),
  };
}

/** The same text several times, with seeds that follow each other. */
export function copies(work: Work, count: number): Work[] {
  if (count === 1) return [work];
  const seed = work.sampling.seed ?? freshSeed();
  return Array.from({ length: count }, (_unused, i) => ({
    ...work,
    sampling: { ...work.sampling, seed: seed + i },
  }));
}

/** The sampling parameters that are in force, for `/props`. */
export function effectiveSampling(defaults: SamplingDefaults) {
  const { temperature, topK, topP, minP, repeatPenalty } = defaultSampling;
  return {
    temperature: defaults.temperature ?? temperature,
    top_k: defaults.topK ?? topK,
    top_p: defaults.topP ?? topP,
    min_p: defaults.minP ?? minP,
    repeat_penalty: defaults.repeatPenalty ?? repeatPenalty,
  };
}
