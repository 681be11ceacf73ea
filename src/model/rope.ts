/**
 * Rotary frequencies with the ways to stretch them: linear, YaRN (Peng et al. 2023, arXiv
 * 2309.00071), and divisors that converters store as a tensor, from Llama 3 or LongRoPE (Ding et
 * al. 2024, arXiv 2402.13753).
 */
import type { Rotation } from "../kernels/rope-cache.ts";
import type { ConfigReader } from "./config.ts";
import { tableOf, type Pass } from "./model.ts";

export interface Rope {
  /** Leading values of a head that are rotated. */
  readonly rotary: number;
  readonly pairs: "neighbours" | "halves";
  /** Angle a position of each pair, [rotary / 2]. */
  readonly radians: Float64Array;
  /** Factor on cosine and sine: YaRN's attention factor. */
  readonly magnitude: number;
}

export interface RopeOptions {
  readonly headWidth: number;
  readonly pairs: Rope["pairs"];
  /** From `rope_freqs.weight` and the like, [rotary / 2]. */
  readonly divisors?: ArrayLike<number> | undefined;
  /** Instead of `rope.freq_base`. */
  readonly base?: number;
  /** Instead of `rope.dimension_count`. */
  readonly rotary?: number;
  /** Whether the ways to stretch apply; they do by default. */
  readonly stretched?: boolean;
}

/** Reads the `rope.*` keys of an architecture. */
export function readRope(reader: ConfigReader, options: RopeOptions): Rope {
  const { headWidth, pairs, divisors, stretched = true } = options;
  const rotary = options.rotary ?? reader.count("rope.dimension_count", headWidth, headWidth);
  if (rotary % 2 !== 0) throw reader.bad(`rope.dimension_count ${rotary} is odd`);
  if (rotary > headWidth) {
    throw reader.bad(`rope.dimension_count ${rotary} does not fit heads of ${headWidth}`);
  }
  if (divisors !== undefined && divisors.length !== rotary / 2) {
    throw reader.bad(`${divisors.length} rope factors do not fit ${rotary} rotated values`);
  }
  const base = options.base ?? reader.positive("rope.freq_base", 10_000);
  const radians = Float64Array.from(
    { length: rotary / 2 },
    (_unused, i) => base ** ((-2 * i) / rotary) / (divisors?.[i] ?? 1),
  );
  if (!stretched) return { rotary, pairs, radians, magnitude: 1 };
  // Old files give a factor alone, and mean this.
  const type = reader.optionalString("rope.scaling.type") ?? "linear";
  const factor = reader.positive(
    "rope.scaling.factor",
    reader.optionalNumber("rope.scale_linear") ?? 1,
  );
  const magnitude =
    reader.positive("rope.scaling.attn_factor", 1) *
    reader.positive("rope.scaling.yarn_attn_factor", 1);
  switch (type) {
    case "none":
    case "longrope":
      return { rotary, pairs, radians, magnitude };
    case "linear":
      return { rotary, pairs, radians: radians.map((angle) => angle / factor), magnitude };
    case "yarn": {
      const extrapolation = reader.optionalNumber("rope.scaling.yarn_ext_factor") ?? 1;
      return {
        rotary,
        pairs,
        radians: yarn(reader, radians, base, factor, extrapolation),
        magnitude: extrapolation === 0 ? magnitude : magnitude * yarnMagnitude(reader, factor),
      };
    }
    default:
      throw reader.bad(`rope.scaling.type is "${type}", which zinc does not know`);
  }
}

/** What the kernel needs; its table of frequencies is one of the model's. */
export function rotationOf(pass: Pass, rope: Rope, table: string): Rotation {
  const { rotary, pairs, magnitude } = rope;
  return { rotary, pairs, magnitude, frequencies: tableOf(pass, table) };
}

/** The context that a model was trained with before it was stretched. */
export function originalContext(reader: ConfigReader): number {
  return reader.positive(
    "rope.scaling.original_context_length",
    reader.count("context_length", 1 << 30),
  );
}

/**
 * High frequencies stay, low ones are stretched by `factor`, with a ramp between (YaRN, section
 * 3.2).
 */
function yarn(
  reader: ConfigReader,
  radians: Float64Array,
  base: number,
  factor: number,
  extrapolation: number,
): Float64Array {
  const rotary = radians.length * 2;
  const original = originalContext(reader);
  // The pair that turns `rotations` times within the original context.
  const pairOf = (rotations: number) =>
    (rotary * Math.log(original / (rotations * 2 * Math.PI))) / (2 * Math.log(base));
  const clamp = (value: number) => Math.min(Math.max(value, 0), rotary - 1);
  const low = clamp(Math.floor(pairOf(reader.positive("rope.scaling.yarn_beta_fast", 32))));
  const high = clamp(Math.ceil(pairOf(reader.positive("rope.scaling.yarn_beta_slow", 1))));
  return radians.map((angle, i) => {
    const position = (i - low) / Math.max(0.001, high - low);
    const keep = (1 - Math.min(Math.max(position, 0), 1)) * extrapolation;
    return (angle / factor) * (1 - keep) + angle * keep;
  });
}

/**
 * YaRN, section 3.4, where a model has not learnt part of it: DeepSeek's `mscale_all_dim`, which
 * converters store as the log multiplier.
 */
function yarnMagnitude(reader: ConfigReader, factor: number): number {
  const growth = (multiplier: number) =>
    factor <= 1 ? 1 : 0.1 * multiplier * Math.log(factor) + 1;
  const learnt = reader.optionalNumber("rope.scaling.yarn_log_multiplier") ?? 0;
  return growth(1) / growth(learnt);
}
