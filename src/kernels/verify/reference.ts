/**
 * Every kernel again, in plain loops and double precision: what the device's results are compared
 * with.
 */
import type { GateFunction } from "../gate.ts";
import type { OutputSampling } from "../sample.ts";

/** y[c, r] = Σ w[r, k] · x[c, k] */
export function matmulReference(
  w: Float32Array,
  x: Float32Array,
  rows: number,
  width: number,
  columns: number,
): Float64Array {
  const y = new Float64Array(columns * rows);
  for (let c = 0; c < columns; c++) {
    for (let r = 0; r < rows; r++) {
      let sum = 0;
      for (let k = 0; k < width; k++) sum += (w[r * width + k] ?? 0) * (x[c * width + k] ?? 0);
      y[c * rows + r] = sum;
    }
  }
  return y;
}

/** Runs of `weight.length` values, each normalized alone. */
export function rmsNormReference(
  x: ArrayLike<number>,
  weight: ArrayLike<number>,
  epsilon: number,
): Float64Array {
  const width = weight.length;
  const y = new Float64Array(x.length);
  for (let start = 0; start < x.length; start += width) {
    let squares = 0;
    for (let i = 0; i < width; i++) squares += (x[start + i] ?? 0) ** 2;
    const scale = 1 / Math.sqrt(squares / width + epsilon);
    for (let i = 0; i < width; i++) y[start + i] = (x[start + i] ?? 0) * scale * (weight[i] ?? 0);
  }
  return y;
}

/** f(gate) · up */
const gateReference: Readonly<Record<GateFunction, (gate: number, up: number) => number>> = {
  silu: (gate, up) => (gate / (1 + Math.exp(-gate))) * up,
  gelu(gate, up) {
    const inner = Math.sqrt(2 / Math.PI) * (gate + 0.044715 * gate ** 3);
    return 0.5 * gate * (1 + Math.tanh(inner)) * up;
  },
  clamped(gate, up) {
    const g = Math.min(gate, 7);
    return (g / (1 + Math.exp(-1.702 * g))) * (Math.min(Math.max(up, -7), 7) + 1);
  },
};

export function gluReference(
  gate: ArrayLike<number>,
  up: ArrayLike<number>,
  activation: GateFunction = "silu",
): Float64Array {
  return Float64Array.from(gate, (g, i) => gateReference[activation](g, up[i] ?? 0));
}

/** Rotates the leading `2 · radians.length` values of one head by position · radians. */
export function ropeReference(
  head: ArrayLike<number>,
  position: number,
  radians: ArrayLike<number>,
  pairs: "neighbours" | "halves",
): number[] {
  const result = Array.from(head);
  for (let p = 0; p < radians.length; p++) {
    const [i, j] = pairs === "neighbours" ? [2 * p, 2 * p + 1] : [p, p + radians.length];
    const angle = position * (radians[p] ?? 0);
    const [a, b] = [head[i] ?? 0, head[j] ?? 0];
    result[i] = a * Math.cos(angle) - b * Math.sin(angle);
    result[j] = a * Math.sin(angle) + b * Math.cos(angle);
  }
  return result;
}

export interface AttentionReference {
  readonly query: ArrayLike<number>;
  /** Of the visible positions. */
  readonly keys: readonly ArrayLike<number>[];
  readonly values: readonly ArrayLike<number>[];
  readonly scale: number;
  readonly cap?: number | undefined;
  readonly sink?: number | undefined;
}

/** softmax(scale · q · Kᵀ) · V of one head. */
export function attentionReference(args: AttentionReference): number[] {
  const { query, keys, values, scale, cap, sink = Number.NEGATIVE_INFINITY } = args;
  const scores = keys.map((key) => {
    let score = 0;
    for (let i = 0; i < key.length; i++) score += (query[i] ?? 0) * (key[i] ?? 0);
    return cap === undefined ? score * scale : cap * Math.tanh((score * scale) / cap);
  });
  const best = Math.max(...scores, sink);
  const weights = scores.map((score) => Math.exp(score - best));
  const total = weights.reduce((sum, weight) => sum + weight, Math.exp(sink - best));
  return Array.from(
    { length: values[0]?.length ?? 0 },
    (_unused, i) =>
      values.reduce((sum, value, k) => sum + (weights[k] ?? 0) * (value[i] ?? 0), 0) / total,
  );
}

/** The token that an output's parameters and random number choose. */
export function sampleReference(logits: Float32Array, sampling: OutputSampling): number {
  const { temperature, topK, topP, minP, random, biases } = sampling;
  const sorted = Array.from(logits, (logit, token) => ({
    token,
    logit: logit + (biases.get(token) ?? 0),
  })).sort((a, b) => b.logit - a.logit || a.token - b.token);
  const list = sorted.slice(0, topK);
  const best = list[0]?.logit ?? 0;
  const weight = (logit: number, t: number) => Math.exp((logit - best) / t);
  const total = list.reduce((sum, { logit }) => sum + weight(logit, 1), 0);
  let reached = 0;
  const kept = list.filter(({ logit }, i) => {
    const isIn = i === 0 || topP >= 1 || reached < topP * total;
    reached += weight(logit, 1);
    return isIn && (i === 0 || weight(logit, 1) >= minP);
  });
  if (temperature === 0) return kept[0]?.token ?? 0;
  let rest = random * kept.reduce((sum, { logit }) => sum + weight(logit, temperature), 0);
  const drawn = kept.find(({ logit }) => (rest -= weight(logit, temperature)) < 0) ?? kept.at(-1);
  return drawn?.token ?? 0;
}
