/** The kernels of a mixture of experts again, in plain loops and double precision. */
import type { Routing } from "../expert-choice.ts";

export interface Choice {
  readonly expert: number;
  readonly weight: number;
}

/** The experts of one row, best first; of equals the one with the lower number. */
export function choiceReference(
  logits: ArrayLike<number>,
  { used, scoring, normalize, scale }: Omit<Routing, "experts">,
  bias?: ArrayLike<number>,
  factors?: ArrayLike<number>,
): Choice[] {
  const plain = Array.from(logits);
  const scores =
    scoring === "softmax"
      ? softmax(plain)
      : scoring === "sigmoid"
        ? plain.map((x) => 1 / (1 + Math.exp(-x)))
        : plain;
  const rank = (expert: number) => (scores[expert] ?? 0) + (bias?.[expert] ?? 0);
  const chosen = plain
    .map((_logit, expert) => expert)
    .toSorted((a, b) => rank(b) - rank(a) || a - b)
    .slice(0, used);
  let weights = chosen.map((expert) => scores[expert] ?? 0);
  if (scoring === "softmax of the chosen") weights = softmax(weights);
  const total = normalize ? weights.reduce((sum, weight) => sum + weight, 0) : 1;
  return chosen.map((expert, slot) => ({
    expert,
    weight: (((weights[slot] ?? 0) * scale) / total) * (factors?.[expert] ?? 1),
  }));
}

function softmax(values: readonly number[]): number[] {
  const best = Math.max(...values);
  const powers = values.map((value) => Math.exp(value - best));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}
