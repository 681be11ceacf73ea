/** Sampling parameters: what each means, its default and its range. */
import { UserError } from "../errors.ts";

export interface Sampling {
  /** Divides the logits; 0 always takes the best token. */
  readonly temperature: number;
  /** Keep the k best tokens; 0 keeps all. */
  readonly topK: number;
  /** Keep the best tokens whose probabilities add up to p (Holtzman et al. 2020); 1 keeps all. */
  readonly topP: number;
  /** Keep tokens at least p times as likely as the best one (Nguyen et al. 2024); 0 keeps all. */
  readonly minP: number;
  /**
   * Divides positive and multiplies negative logits of recent tokens (Keskar et al. 2019); 1 is
   * off.
   */
  readonly repeatPenalty: number;
  /** Subtracted once from the logit of every token that was generated. */
  readonly presencePenalty: number;
  /** Subtracted for each time that a token was generated. */
  readonly frequencyPenalty: number;
  /** Added to the logits of these tokens; -Infinity bans one. */
  readonly logitBias: ReadonlyMap<number, number>;
  /** The same seed gives the same text; undefined takes a fresh one. */
  readonly seed: number | undefined;
}

/** What most engines do when nothing is asked for. */
export const defaultSampling: Sampling = {
  temperature: 0.8,
  topK: 40,
  topP: 0.95,
  minP: 0.05,
  repeatPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
  logitBias: new Map(),
  seed: undefined,
};

/** Tokens that the repeat penalty looks back on, the prompt included. */
export const repeatWindow = 64;

const ranges: Readonly<
  Record<string, { low: number; high: number; integer?: true; aboveLow?: true }>
> = {
  temperature: { low: 0, high: 100 },
  topK: { low: 0, high: 1 << 30, integer: true },
  topP: { low: 0, high: 1, aboveLow: true },
  minP: { low: 0, high: 1 },
  repeatPenalty: { low: 0, high: 100, aboveLow: true },
  presencePenalty: { low: -100, high: 100 },
  frequencyPenalty: { low: -100, high: 100 },
  seed: { low: 0, high: Number.MAX_SAFE_INTEGER, integer: true },
};

/** Fills in defaults; throws a "usage" error for a value out of range. */
export function completeSampling(given: {
  readonly [K in keyof Sampling]?: Sampling[K] | undefined;
}): Sampling {
  for (const [name, { low, high, integer, aboveLow }] of Object.entries(ranges)) {
    const value = given[name as keyof Sampling] as number | undefined;
    if (value === undefined) continue;
    // Callers without types pass text, which would compare well.
    const isNumber = typeof value === "number";
    const inside = value >= low && value <= high && (aboveLow !== true || value > low);
    if (isNumber && inside && (integer !== true || Number.isInteger(value))) continue;
    const kind = integer === true ? "a whole number" : "a number";
    const from = aboveLow === true ? `above ${low}` : `from ${low}`;
    throw new UserError("usage", `${name} is ${value}`, `it must be ${kind} ${from} to ${high}`);
  }
  const known = Object.fromEntries(
    Object.entries(given).filter(([, value]) => value !== undefined),
  );
  return { ...defaultSampling, ...known };
}
