/** The kernels of recurrent layers again, in plain loops and double precision. */

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
export const silu = (x: number) => x * sigmoid(x);

/**
 * The convolution of one sequence, from its first row on: silu(Σᵢ weight[c, i] · u[t - past + i,
 * c]).
 */
export function shortConvReference(
  u: ArrayLike<number>,
  weight: ArrayLike<number>,
  channels: number,
): Float64Array {
  const taps = weight.length / channels;
  const rows = u.length / channels;
  const y = new Float64Array(u.length);
  for (let t = 0; t < rows; t++) {
    for (let c = 0; c < channels; c++) {
      let sum = 0;
      for (let i = 0; i < taps; i++) {
        const row = t - taps + 1 + i;
        if (row >= 0) sum += (weight[c * taps + i] ?? 0) * (u[row * channels + c] ?? 0);
      }
      y[t * channels + c] = silu(sum);
    }
  }
  return y;
}

export interface DeltaInput {
  /** One list a row and head. */
  readonly queries: readonly ArrayLike<number>[];
  readonly keys: readonly ArrayLike<number>[];
  readonly values: readonly ArrayLike<number>[];
  /** One number a row, before sigmoid and softplus. */
  readonly betas: readonly number[];
  readonly alphas: readonly number[];
  readonly decay: number;
  readonly offset: number;
  readonly epsilon: number;
}

/** The delta rule of one head along the rows of one sequence, from its first row on. */
export function gatedDeltaReference(input: DeltaInput): {
  results: number[][];
  /** [value column][key] */
  state: number[][];
} {
  const width = input.queries[0]?.length ?? 0;
  const state = Array.from({ length: width }, () => new Array<number>(width).fill(0));
  const results = input.queries.map((query, t) => {
    const q = unit(query, input.epsilon).map((x) => x / Math.sqrt(width));
    const k = unit(input.keys[t] ?? [], input.epsilon);
    const beta = sigmoid(input.betas[t] ?? 0);
    const keep = Math.exp(
      input.decay * Math.log1p(Math.exp((input.alphas[t] ?? 0) + input.offset)),
    );
    return state.map((column, j) => {
      for (let i = 0; i < width; i++) column[i] = (column[i] ?? 0) * keep;
      const known = dot(column, k);
      const delta = beta * ((input.values[t]?.[j] ?? 0) - known);
      for (let i = 0; i < width; i++) column[i] = (column[i] ?? 0) + (k[i] ?? 0) * delta;
      return dot(column, q);
    });
  });
  return { results, state };
}

function unit(x: ArrayLike<number>, epsilon: number): number[] {
  const length = Math.max(Math.sqrt(dot(x, x)), epsilon);
  return Array.from(x, (value) => value / length);
}

export function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] ?? 0) * (b[i] ?? 0);
  return sum;
}

/** RMS norm of each head with one weight, times silu(gate). */
export function gatedNormReference(
  x: ArrayLike<number>,
  weight: ArrayLike<number>,
  gate: ArrayLike<number>,
  epsilon: number,
): Float64Array {
  const width = weight.length;
  return Float64Array.from(x, (value, i) => {
    const start = i - (i % width);
    let squares = 0;
    for (let j = start; j < start + width; j++) squares += (x[j] ?? 0) ** 2;
    const scale = 1 / Math.sqrt(squares / width + epsilon);
    return value * scale * (weight[i % width] ?? 0) * silu(gate[i] ?? 0);
  });
}
