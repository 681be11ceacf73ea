/**
 * The forward pass of Llama (arXiv 2302.13971 and 2407.21783) in plain loops and double precision,
 * written from the papers: what the models on the device are compared with. Slow, and exact.
 */
import type { TinyLlama } from "./tiny-llama.ts";

type Vector = readonly number[];

/** The logits behind each of the tokens. */
export function referenceLogits({ shape, values }: TinyLlama, tokens: readonly number[]): Vector[] {
  const weight = (name: string) => {
    const found = values.get(name);
    if (found === undefined) throw new Error(`no ${name}`);
    return found;
  };
  const embeddings = weight("token_embd.weight");
  const { width, layers } = shape;
  let states: Vector[] = tokens.map((token) => [
    ...embeddings.subarray(token * width, (token + 1) * width),
  ]);
  for (let layer = 0; layer < layers; layer++) {
    const of = (name: string) => weight(`blk.${layer}.${name}.weight`);
    const bias = (name: string) => values.get(`blk.${layer}.${name}.bias`);
    const normed = states.map((x) => rmsNorm(x, of("attn_norm"), shape.epsilon));
    const project = (name: string) => normed.map((x) => affine(of(name), x, bias(name)));
    const attended = attend(
      { shape, values },
      project("attn_q"),
      project("attn_k"),
      project("attn_v"),
    );
    states = states.map((x, i) =>
      add(x, affine(of("attn_output"), attended[i] ?? [], bias("attn_output"))),
    );
    states = states.map((x) => {
      const h = rmsNorm(x, of("ffn_norm"), shape.epsilon);
      const up = affine(of("ffn_up"), h);
      const gated = affine(of("ffn_gate"), h).map((g, i) => (g / (1 + Math.exp(-g))) * at(up, i));
      return add(x, affine(of("ffn_down"), gated));
    });
  }
  const head = values.get("output.weight") ?? embeddings;
  return states.map((x) => affine(head, rmsNorm(x, weight("output_norm.weight"), shape.epsilon)));
}

/** Causal attention; several query heads share a head of keys and values. */
function attend(
  { shape, values }: Pick<TinyLlama, "shape" | "values">,
  queries: readonly Vector[],
  keys: readonly Vector[],
  vectors: readonly Vector[],
): Vector[] {
  const { heads, kvHeads, headWidth, ropeBase } = shape;
  const divisors = values.get("rope_freqs.weight");
  const part = (x: Vector, head: number) => x.slice(head * headWidth, (head + 1) * headWidth);
  return queries.map((query, position) =>
    Array.from({ length: heads }, (_, head) => {
      const shared = Math.floor(head / (heads / kvHeads));
      const q = rotate(part(query, head), position, ropeBase, divisors);
      const scores = keys
        .slice(0, position + 1)
        .map((key, i) => dot(q, rotate(part(key, shared), i, ropeBase, divisors)))
        .map((score) => score / Math.sqrt(headWidth));
      const best = Math.max(...scores);
      const weights = scores.map((score) => Math.exp(score - best));
      const total = weights.reduce((sum, x) => sum + x, 0);
      return Array.from({ length: headWidth }, (_unused, i) =>
        weights.reduce((sum, w, t) => sum + (w / total) * at(part(vectors[t] ?? [], shared), i), 0),
      );
    }).flat(),
  );
}

/** RoPE (arXiv 2104.09864): neighbouring values are turned by the position times a frequency. */
function rotate(
  x: Vector,
  position: number,
  base: number,
  divisors: Float32Array | undefined,
): Vector {
  return x.map((value, i) => {
    const pair = i >> 1;
    const angle = (position * base ** ((-2 * pair) / x.length)) / (divisors?.[pair] ?? 1);
    return i % 2 === 0
      ? value * Math.cos(angle) - at(x, i + 1) * Math.sin(angle)
      : at(x, i - 1) * Math.sin(angle) + value * Math.cos(angle);
  });
}

function rmsNorm(x: Vector, weight: Float32Array, epsilon: number): Vector {
  const scale = 1 / Math.sqrt(dot(x, x) / x.length + epsilon);
  return x.map((value, i) => value * scale * (weight[i] ?? Number.NaN));
}

/** W · x + b; W row by row. */
function affine(w: Float32Array, x: Vector, bias?: Float32Array): Vector {
  const y: number[] = [];
  for (let row = 0; row * x.length < w.length; row++) {
    let sum = bias === undefined ? 0 : (bias[row] ?? Number.NaN);
    for (let i = 0; i < x.length; i++) sum += (w[row * x.length + i] ?? Number.NaN) * at(x, i);
    y.push(sum);
  }
  return y;
}

function dot(a: Vector, b: Vector): number {
  return a.reduce((sum, value, i) => sum + value * at(b, i), 0);
}

function add(a: Vector, b: Vector): Vector {
  return a.map((value, i) => value + at(b, i));
}

function at(x: Vector, i: number): number {
  return x[i] ?? Number.NaN;
}
