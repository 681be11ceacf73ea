/**
 * Rotary frequencies with the ways to stretch them: linear, YaRN (Peng et al. 2023, arXiv
 * 2309.00071), and Llama 3's, which converters store as a tensor of divisors.
 */
import type { ConfigReader } from "./config.ts";

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
  /** From `rope_freqs.weight`, [rotary / 2]. */
  readonly divisors?: ArrayLike<number> | undefined;
}

/** Reads the `rope.*` keys of an architecture. */
export function readRope(reader: ConfigReader, { headWidth, pairs, divisors }: RopeOptions): Rope {
  const rotary = reader.count("rope.dimension_count", headWidth, headWidth);
  if (rotary % 2 !== 0) throw reader.bad(`rope.dimension_count ${rotary} is odd`);
  const base = reader.positive("rope.freq_base", 10_000);
  const radians = Float64Array.from(
    { length: rotary / 2 },
    (_unused, i) => base ** ((-2 * i) / rotary) / (divisors?.[i] ?? 1),
  );
  // Old files give a factor alone, and mean this.
  const type = reader.optionalString("rope.scaling.type") ?? "linear";
  const factor = reader.positive(
    "rope.scaling.factor",
    reader.optionalNumber("rope.scale_linear") ?? 1,
  );
  switch (type) {
    case "none":
      return { rotary, pairs, radians, magnitude: 1 };
    case "linear":
      return { rotary, pairs, radians: radians.map((angle) => angle / factor), magnitude: 1 };
    case "yarn":
      return { rotary, pairs, ...yarn(reader, radians, base, factor) };
    default:
      throw reader.bad(`rope.scaling.type is "${type}", which zinc does not know`);
  }
}

/**
 * High frequencies stay, low ones are stretched by `factor`, with a ramp between (YaRN, section
 * 3.2).
 */
function yarn(reader: ConfigReader, radians: Float64Array, base: number, factor: number) {
  const rotary = radians.length * 2;
  const original = reader.positive(
    "rope.scaling.original_context_length",
    reader.count("context_length", 1 << 30),
  );
  const extrapolation = reader.optionalNumber("rope.scaling.yarn_ext_factor") ?? 1;
  const attention =
    reader.optionalNumber("rope.scaling.yarn_attn_factor") ??
    reader.optionalNumber("rope.scaling.attn_factor") ??
    1;
  // The pair that turns `rotations` times within the original context.
  const pairOf = (rotations: number) =>
    (rotary * Math.log(original / (rotations * 2 * Math.PI))) / (2 * Math.log(base));
  const clamp = (value: number) => Math.min(Math.max(value, 0), rotary - 1);
  const low = clamp(Math.floor(pairOf(reader.positive("rope.scaling.yarn_beta_fast", 32))));
  const high = clamp(Math.ceil(pairOf(reader.positive("rope.scaling.yarn_beta_slow", 1))));
  const stretched = radians.map((angle, i) => {
    const position = (i - low) / Math.max(0.001, high - low);
    const keep = (1 - Math.min(Math.max(position, 0), 1)) * extrapolation;
    return (angle / factor) * (1 - keep) + angle * keep;
  });
  return { radians: stretched, magnitude: attention * (0.1 * Math.log(factor) + 1) };
}
