/** The kernels of recurrent layers again, in plain loops and double precision. */

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
const silu = (x: number) => x * sigmoid(x);

/**
 * The convolution of one sequence, from its first row on: silu(Σᵢ weight[c, i] · u[t - past + i,
 * c]), or with `gated`, where rows hold b, g and v: g[t, c] · Σᵢ weight[c, i] · (b ⊙ v)[…].
 */
export function shortConvReference(
  u: ArrayLike<number>,
  weight: ArrayLike<number>,
  channels: number,
  gated: boolean,
): Float64Array {
  const taps = weight.length / channels;
  const rowWidth = gated ? 3 * channels : channels;
  const rows = u.length / rowWidth;
  const part = (row: number, index: number, c: number) =>
    u[row * rowWidth + index * channels + c] ?? 0;
  const y = new Float64Array(rows * channels);
  for (let t = 0; t < rows; t++) {
    for (let c = 0; c < channels; c++) {
      let sum = 0;
      for (let i = Math.max(0, taps - 1 - t); i < taps; i++) {
        const row = t - taps + 1 + i;
        const input = gated ? part(row, 0, c) * part(row, 2, c) : part(row, 0, c);
        sum += (weight[c * taps + i] ?? 0) * input;
      }
      y[t * channels + c] = gated ? part(t, 1, c) * sum : silu(sum);
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
