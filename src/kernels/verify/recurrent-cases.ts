/** The kernels of recurrent layers: rows of several sequences, begun and continued. */
import { convolvedDelta } from "../convolved-delta.ts";
import { deltaTerms } from "../delta-terms.ts";
import { gatedDelta, gatedDeltaStateBytes } from "../gated-delta.ts";
import { gatedNorm } from "../gated-norm.ts";
import { shortConv, shortConvStateBytes } from "../short-conv.ts";
import type { StepRow } from "../step.ts";
import { reductions, relativeError, sumBound, type Force, type VerifyCase } from "./case.ts";
import { Random } from "./random.ts";
import {
  gatedDeltaReference,
  gatedNormReference,
  shortConvReference,
} from "./recurrent-reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

/**
 * Runs of rows, step by step: [sequence, rows]. Sequences begin in different steps, continue with
 * fewer and with more rows than the convolution looks back on, and change their order.
 */
const steps = [
  [
    [2, 5],
    [0, 1],
  ],
  [
    [0, 2],
    [1, 9],
    [2, 1],
  ],
  [[0, 4]],
  [
    [1, 3],
    [0, 1],
  ],
] as const;
const sequenceCapacity = 3;
const rowCapacity = 16;
const totalRows = [8, 12, 6];

/** The rows of each step, and for each row its place in its sequence. */
function stepRows(): StepRow[][] {
  const lengths = new Array<number>(sequenceCapacity).fill(0);
  return steps.map((runs) =>
    runs.flatMap(([sequence, count]) =>
      Array.from({ length: count }, () => {
        const position = lengths[sequence] ?? 0;
        lengths[sequence] = position + 1;
        return { token: 0, position, sequence };
      }),
    ),
  );
}

/** Gathers rows of a step from what was made for whole sequences, [position, width] each. */
function gather(
  rows: readonly StepRow[],
  sources: readonly ArrayLike<number>[],
  width: number,
): Float32Array {
  const result = new Float32Array(rowCapacity * width);
  rows.forEach(({ position, sequence }, row) => {
    for (let i = 0; i < width; i++)
      result[row * width + i] = sources[sequence]?.[position * width + i] ?? 0;
  });
  return result;
}

/** The largest error over all steps; what earlier sequences left in the state must not matter. */
function overSteps(run: (rows: readonly StepRow[]) => number): number {
  return Math.max(...stepRows().map(run));
}

function convCase(channels: number, taps: number, gated = false): VerifyCase {
  const rowWidth = gated ? 3 * channels : channels;
  return {
    kernel: "short_conv",
    variant: gated ? "gated" : "f32",
    name: `${channels} channels, ${taps} taps, 3 sequences in 4 steps`,
    bound: 1e-5,
    run(bench) {
      const random = new Random(channels);
      const weight = random.floats(channels * taps);
      const inputs = totalRows.map((rows) => random.floats(rows * rowWidth, 3));
      const outputs = inputs.map((u) => shortConvReference(u, weight, channels, gated));
      const state = bench.floats((sequenceCapacity * shortConvStateBytes(channels, taps)) / 4);
      const vector = bench.vector("weight", weight);
      return overSteps((rows) => {
        const y = bench.floats(rowCapacity * channels);
        bench.run((context) =>
          shortConv(context, {
            u: bench.upload(gather(rows, inputs, rowWidth)),
            gated,
            weight: vector,
            y,
            state,
            channels,
            step: uploadStep(bench, rows, { capacity: rowCapacity }),
            rowCapacity,
            sequenceCapacity,
          }),
        );
        const count = rows.length * channels;
        return relativeError(
          bench.read(y, count),
          gather(rows, outputs, channels).subarray(0, count),
        );
      });
    },
  };
}

interface DeltaCase {
  readonly heads: number;
  readonly keyHeads: number;
  readonly width: number;
  readonly grouped: boolean;
}

/** What sequences bring to the rule and take from it. */
interface DeltaSequence {
  readonly mixed: Float32Array;
  readonly beta: Float32Array;
  readonly alpha: Float32Array;
  /** [rows, heads, width] */
  readonly results: Float64Array;
  /** [heads, columns, keys] */
  readonly state: number[];
}

/** The first key has no length at all. */
function randomMixed(random: Random, rows: number, channels: number, key: number, width: number) {
  return random.floats(rows * channels, 2).fill(0, key, key + width);
}

function deltaSequence(
  random: Random,
  rows: number,
  { heads, keyHeads, width, grouped }: DeltaCase,
  decay: Float32Array,
  offset: Float32Array,
  mixed = randomMixed(random, rows, (2 * keyHeads + heads) * width, keyHeads * width, width),
): DeltaSequence {
  const channels = (2 * keyHeads + heads) * width;
  const beta = random.floats(rows * heads, 6);
  // Far above what an exponential holds, and far below.
  const alpha = random.floats(rows * heads, 8).map((x, i) => (i % 11 === 3 ? 20 * x : x));
  const results = new Float64Array(rows * heads * width);
  const part = (t: number, head: number) =>
    mixed.subarray(t * channels + head * width, t * channels + (head + 1) * width);
  const state = Array.from({ length: heads }, (_unused, h) => {
    const keyHead = grouped ? Math.floor((h * keyHeads) / heads) : h % keyHeads;
    const all = <T>(of: (t: number) => T) => Array.from({ length: rows }, (_row, t) => of(t));
    const reference = gatedDeltaReference({
      queries: all((t) => part(t, keyHead)),
      keys: all((t) => part(t, keyHeads + keyHead)),
      values: all((t) => part(t, 2 * keyHeads + h)),
      betas: all((t) => beta[t * heads + h] ?? 0),
      alphas: all((t) => alpha[t * heads + h] ?? 0),
      decay: decay[h] ?? 0,
      offset: offset[h] ?? 0,
      epsilon: 1e-6,
    });
    reference.results.forEach((row, t) => results.set(row, (t * heads + h) * width));
    return reference.state.flat();
  }).flat();
  return { mixed, beta, alpha, results, state };
}

/** [rows, heads] twice → [rows, keyHeads, betas | alphas]. */
function interleaved(beta: Float32Array, alpha: Float32Array, heads: number, keyHeads: number) {
  const sharing = heads / keyHeads;
  return Float32Array.from({ length: 2 * beta.length }, (_unused, i) => {
    const pair = Math.floor(i / (2 * sharing));
    const within = i % (2 * sharing);
    return (within < sharing ? beta : alpha)[pair * sharing + (within % sharing)] ?? 0;
  });
}

function deltaCase(
  input: DeltaCase,
  isPrepared: boolean,
  force: Force,
  variant: string,
): Omit<VerifyCase, "needs"> {
  const { heads, keyHeads, width, grouped } = input;
  const shape = `${heads} heads of ${keyHeads} keys, width ${width}`;
  return {
    kernel: "gated_delta",
    variant: grouped ? `${variant} grouped` : variant,
    name: `${shape}, 3 sequences in 4 steps${isPrepared ? ", prepared" : ""}`,
    bound: sumBound,
    run: (bench) => runDelta(bench, input, isPrepared, force),
  };
}

function runDelta(bench: Workbench, input: DeltaCase, isPrepared: boolean, force: Force): number {
  const { heads, keyHeads, width, grouped } = input;
  const random = new Random(heads * width);
  const decay = Float32Array.from({ length: heads }, () => random.between(-4, -0.05));
  const offset = random.floats(heads, 2);
  const sequences = totalRows.map((rows) => deltaSequence(random, rows, input, decay, offset));
  const floats = (sequenceCapacity * gatedDeltaStateBytes(heads, width)) / 4;
  const state = bench.floats(floats);
  const channels = (2 * keyHeads + heads) * width;
  const vectors = { decay: bench.vector("decay", decay), offset: bench.vector("offset", offset) };
  const ofEach = (key: "mixed" | "beta" | "alpha" | "results") =>
    sequences.map((sequence) => sequence[key]);
  const error = overSteps((rows) => {
    const result = bench.floats(rowCapacity * heads * width);
    const beta = gather(rows, ofEach("beta"), heads);
    const alpha = gather(rows, ofEach("alpha"), heads);
    const both = grouped ? bench.upload(interleaved(beta, alpha, heads, keyHeads)) : undefined;
    const terms = isPrepared ? bench.floats(rowCapacity * heads * 4) : undefined;
    bench.run((recording) => {
      const context = { ...recording, force };
      const delta = {
        mixed: bench.upload(gather(rows, ofEach("mixed"), channels)),
        beta: both ?? bench.upload(beta),
        alpha: both ?? bench.upload(alpha),
        ...vectors,
        heads,
        keyHeads,
        width,
        epsilon: 1e-6,
        grouped,
        step: uploadStep(bench, rows, { capacity: rowCapacity }),
        rowCapacity,
      };
      if (terms !== undefined) deltaTerms(context, { ...delta, terms });
      gatedDelta(context, { ...delta, terms, state, result, sequenceCapacity });
    });
    const count = rows.length * heads * width;
    return relativeError(
      bench.read(result, count),
      gather(rows, ofEach("results"), heads * width).subarray(0, count),
    );
  });
  const expected = sequences.flatMap((sequence) => sequence.state);
  return Math.max(error, relativeError(bench.read(state, floats), expected));
}

/** A sequence of 7 rows, one a step, whose keys and values come unconvolved. */
function runConvolved(bench: Workbench, input: DeltaCase, force: Force): number {
  const { heads, keyHeads, width, grouped } = input;
  const [rows, taps] = [7, 4];
  const channels = (2 * keyHeads + heads) * width;
  const random = new Random(heads + width);
  const [weight, u] = [random.floats(channels * taps), random.floats(rows * channels, 3)];
  const mixed = Float32Array.from(shortConvReference(u, weight, channels, false));
  const decay = Float32Array.from({ length: heads }, () => random.between(-4, -0.05));
  const offset = random.floats(heads, 2);
  const sequence = deltaSequence(random, rows, input, decay, offset, mixed);
  const vectors = { decay: bench.vector("decay", decay), offset: bench.vector("offset", offset) };
  const vector = bench.vector("weight", weight);
  const state = bench.floats(gatedDeltaStateBytes(heads, width) / 4);
  const ring = bench.floats(shortConvStateBytes(channels, taps) / 4);
  const result = bench.floats(heads * width);
  const errors = Array.from({ length: rows }, (_unused, position) => {
    const rowOf = (from: Float32Array, count: number) =>
      from.subarray(position * count, (position + 1) * count);
    const [beta, alpha] = [rowOf(sequence.beta, heads), rowOf(sequence.alpha, heads)];
    const both = grouped ? bench.upload(interleaved(beta, alpha, heads, keyHeads)) : undefined;
    bench.run((context) =>
      convolvedDelta(
        { ...context, force },
        {
          mixed: bench.upload(rowOf(u, channels)),
          convolution: { weight: vector, state: ring, result },
          terms: result,
          beta: both ?? bench.upload(beta),
          alpha: both ?? bench.upload(alpha),
          ...vectors,
          ...{ state, result, heads, keyHeads, width, grouped, epsilon: 1e-6 },
          step: uploadStep(bench, [{ token: 0, position, sequence: 0 }]),
          rowCapacity: 1,
          sequenceCapacity: 1,
          deterministic: false,
        },
      ),
    );
    const expected = sequence.results.subarray(
      position * heads * width,
      (position + 1) * heads * width,
    );
    return relativeError(bench.read(result, heads * width), expected);
  });
  return Math.max(
    ...errors,
    relativeError(bench.read(state, sequence.state.length), sequence.state),
  );
}

function gatedNormCase(width: number, force: Force, variant: string): Omit<VerifyCase, "needs"> {
  const [heads, capacity, rows] = [3, 4, 3];
  return {
    kernel: "gated_norm",
    variant,
    name: `3 of 4 rows, 3 heads of width ${width}`,
    bound: 1e-5,
    run(bench) {
      const random = new Random(width);
      const x = random.floats(capacity * heads * width, 1000);
      const gate = random.floats(capacity * heads * width, 100);
      const weight = random.floats(width);
      const y = bench.upload(x);
      bench.run((context) =>
        gatedNorm(
          { ...context, force },
          {
            x: y,
            weight: bench.vector("weight", weight),
            gate: bench.upload(gate),
            y,
            heads,
            epsilon: 1e-6,
            step: uploadStep(bench, plainRows(rows), { capacity }),
            rowCapacity: capacity,
          },
        ),
      );
      const count = rows * heads * width;
      const expected = gatedNormReference(x, weight, gate, 1e-6).subarray(0, count);
      return relativeError(bench.read(y, count), expected);
    },
  };
}

const deltaCases: readonly DeltaCase[] = [
  { heads: 1, keyHeads: 1, width: 32, grouped: false },
  { heads: 4, keyHeads: 2, width: 64, grouped: false },
  { heads: 4, keyHeads: 2, width: 64, grouped: true },
  { heads: 6, keyHeads: 2, width: 128, grouped: true },
  { heads: 3, keyHeads: 1, width: 128, grouped: false },
];

export const recurrentCases: readonly VerifyCase[] = [
  convCase(100, 4),
  convCase(64, 2),
  convCase(33, 6),
  convCase(70, 3, true),
  ...reductions.flatMap(({ variant, force, ...rest }) => [
    ...[false, true].flatMap((isPrepared) =>
      deltaCases.map((input) => ({ ...deltaCase(input, isPrepared, force, variant), ...rest })),
    ),
    ...deltaCases.slice(1, 4).map((input) => ({
      ...deltaCase(input, false, force, variant),
      ...rest,
      name: `${input.heads} heads of ${input.keyHeads} keys, width ${input.width}, convolved`,
      run: (bench: Workbench) => runConvolved(bench, input, force),
    })),
    ...[32, 128, 100].map((width) => ({ ...gatedNormCase(width, force, variant), ...rest })),
  ]),
];
