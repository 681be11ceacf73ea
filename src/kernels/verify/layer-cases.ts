/** Norms, activations and attention. */
import { floatToHalf, halfToFloat } from "../../tensor/half.ts";
import { attention, attentionPartBytes } from "../attention.ts";
import { rmsNorm } from "../rms-norm.ts";
import { blockTokens } from "../step.ts";
import { softCap } from "../soft-cap.ts";
import { swiglu, type Activation } from "../swiglu.ts";
import { reductions, relativeError, type Force, type VerifyCase } from "./case.ts";
import { Random } from "./random.ts";
import { attentionReference, rmsNormReference, swigluReference } from "./reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

function normCase(width: number, force: Force, variant: string): Omit<VerifyCase, "needs"> {
  return {
    kernel: "rms_norm",
    variant,
    name: `rows 4 and 1 of 5, width ${width}`,
    bound: 1e-5,
    run(bench) {
      const random = new Random(width);
      const x = random.floats(5 * width, 60_000);
      const weight = random.floats(width);
      const step = uploadStep(bench, plainRows(5), { outputs: [4, 1] });
      const y = bench.floats(5 * width);
      bench.run((context) =>
        rmsNorm(
          { ...context, force },
          {
            x: bench.upload(x),
            weight: bench.vector("weight", weight),
            y,
            step,
            rowCapacity: 5,
            epsilon: 1e-5,
            gather: true,
          },
        ),
      );
      const all = rmsNormReference(x, weight, 1e-5);
      const expected = [4, 1].flatMap((row) =>
        Array.from(all.subarray(row * width, (row + 1) * width)),
      );
      return relativeError(bench.read(y, expected.length), expected);
    },
  };
}

/** Groups of a row, added to what is there. */
function groupNormCase(force: Force, variant: string): Omit<VerifyCase, "needs"> {
  const [rows, groups, width] = [2, 3, 68];
  return {
    kernel: "rms_norm",
    variant,
    name: "2 rows of 3 groups, width 68, added and halved",
    bound: 1e-5,
    run(bench) {
      const random = new Random(3);
      const x = random.floats(rows * groups * width, 10);
      const before = random.floats(x.length, 10);
      const weight = random.floats(width);
      const y = bench.upload(before);
      bench.run((context) =>
        rmsNorm(
          { ...context, force },
          {
            x: bench.upload(x),
            weight: bench.vector("weight", weight),
            y,
            step: uploadStep(bench, plainRows(rows)),
            rowCapacity: rows,
            epsilon: 1e-5,
            groups,
            accumulate: true,
            factor: 0.5,
          },
        ),
      );
      const normed = rmsNormReference(x, weight, 1e-5);
      return relativeError(
        bench.read(y),
        normed.map((value, i) => 0.5 * (value + (before[i] ?? 0))),
      );
    },
  };
}

interface GateInput {
  readonly activation: Activation;
  readonly largest: number;
  /** Each row is scaled by a sigmoid. */
  readonly switched?: true;
}

function gateCase({ activation, largest, switched }: GateInput): VerifyCase {
  const [width, stride] = [260, 300];
  return {
    kernel: "swiglu",
    variant: switched ? `${activation} switched` : activation,
    name: `3 of 4 rows, width ${width}, gates from -${largest} to ${largest}`,
    bound: 1e-5,
    run(bench) {
      const random = new Random(7);
      const gate = random.floats(4 * width, largest);
      const up = random.floats(4 * stride);
      const rowSwitch = random.floats(4, 6);
      const step = uploadStep(bench, plainRows(3), { capacity: 4 });
      const y = bench.floats(4 * width);
      bench.run((context) =>
        swiglu(context, {
          gate: bench.upload(gate),
          up: bench.upload(up),
          y,
          rowSwitch: switched && bench.upload(rowSwitch),
          step,
          rowCapacity: 4,
          width,
          activation,
          upStride: stride,
        }),
      );
      const rowOf = (i: number) => Math.floor(i / width);
      const packed = gate.map((_unused, i) => up[rowOf(i) * stride + (i % width)] ?? 0);
      const expected = swigluReference(gate, packed, activation).map((value, i) =>
        switched ? value / (1 + Math.exp(-(rowSwitch[rowOf(i)] ?? 0))) : value,
      );
      return relativeError(bench.read(y, 3 * width), expected.subarray(0, 3 * width));
    },
  };
}

const softCapCase: VerifyCase = {
  kernel: "soft_cap",
  variant: "f32",
  name: "2 of 3 outputs, width 301, logits from -100 to 100, cap 30",
  bound: 1e-5,
  run(bench) {
    const logits = new Random(8).floats(3 * 301, 100);
    const step = uploadStep(bench, plainRows(3), { outputs: [0, 2] });
    const y = bench.upload(logits);
    bench.run((context) => softCap(context, { y, step, outputCapacity: 3, width: 301, cap: 30 }));
    const expected = logits.map((x, i) => (i < 2 * 301 ? 30 * Math.tanh(x / 30) : x));
    return relativeError(bench.read(y, expected.length), expected);
  },
};

interface AttentionInput {
  readonly headWidth: number;
  readonly group: number;
  readonly position: number;
  readonly splits: number;
  readonly window?: number;
  /** Keys before this one score far lower than those after it. */
  readonly lateMaximum?: number;
  /** `headWidth` by default. */
  readonly valueWidth?: number;
  readonly cap?: number;
  /** The sinks of the heads lie between this and its negative. */
  readonly sinks?: number;
}

function attentionCase(
  input: AttentionInput,
  force: Force,
  variant: string,
): Omit<VerifyCase, "needs"> {
  const { headWidth, group, position, splits, window, lateMaximum } = input;
  const { valueWidth, cap, sinks } = input;
  const details = [
    `head width ${headWidth}`,
    `${group} query heads`,
    `${position + 1} keys`,
    `${splits} parts`,
    ...(window === undefined ? [] : [`window ${window}`]),
    ...(lateMaximum === undefined ? [] : [`large scores from ${lateMaximum}`]),
    ...(valueWidth === undefined ? [] : [`values of ${valueWidth}`]),
    ...(cap === undefined ? [] : [`cap ${cap}`]),
    ...(sinks === undefined ? [] : [`sinks up to ${sinks}`]),
  ];
  return {
    kernel: "attention",
    variant,
    name: details.join(", "),
    bound: 1e-5,
    run: (bench) => runAttention(bench, input, force),
  };
}

function runAttention(bench: Workbench, input: AttentionInput, force: Force): number {
  const { headWidth, group, position, splits, window = position + 1, lateMaximum = 0 } = input;
  const { valueWidth = headWidth, cap, sinks = 0 } = input;
  const kvHeads = 2;
  const heads = kvHeads * group;
  const random = new Random(headWidth + position);
  const blocks = Math.ceil((position + 1) / blockTokens);
  const table = Array.from({ length: blocks }, (_unused, i) => blocks - 1 - i);
  const query = random.floats(2 * heads * headWidth);
  const cacheOf = (width: number, magnitude: (token: number) => number) =>
    Uint16Array.from({ length: blocks * kvHeads * blockTokens * width }, (_unused, i) => {
      const block = Math.floor(i / (kvHeads * blockTokens * width));
      const token = table.indexOf(block) * blockTokens + (Math.floor(i / width) % blockTokens);
      return floatToHalf(random.between(-1, 1) * magnitude(token));
    });
  const keys = cacheOf(headWidth, (token) => (token < lateMaximum ? 0.1 : 8));
  const values = cacheOf(valueWidth, () => 1e4);
  const sinkScores = random.floats(heads, sinks);
  const rows = [position, Math.floor(position / 2)].map((p) => ({
    token: 0,
    position: p,
    sequence: 0,
  }));
  const step = uploadStep(bench, rows, { tables: [table] });
  const result = bench.floats(2 * heads * valueWidth);
  const parts = bench.floats(attentionPartBytes(2, heads, valueWidth, splits) / 4);
  bench.run((context) =>
    attention(
      { ...context, force },
      {
        query: bench.upload(query),
        keyCache: bench.upload(keys),
        valueCache: bench.upload(values),
        result,
        parts,
        step,
        rowCapacity: 2,
        heads,
        kvHeads,
        headWidth,
        valueWidth,
        scale: 0.3,
        cap,
        ...(sinks !== 0 && { sinks: bench.vector("sinks", sinkScores) }),
        window,
        splits,
      },
    ),
  );
  const headAt = (cache: Uint16Array, width: number, kvHead: number, token: number) => {
    const block = table[Math.floor(token / blockTokens)] ?? 0;
    const slot = ((block * kvHeads + kvHead) * blockTokens + (token % blockTokens)) * width;
    return Array.from(cache.subarray(slot, slot + width), halfToFloat);
  };
  const expected = rows.flatMap(({ position: p }, row) =>
    Array.from({ length: heads }, (_unused, head) => {
      const visible = Array.from({ length: p + 1 }, (_unused2, token) => token).slice(-window);
      const kvHead = Math.floor(head / group);
      const start = (row * heads + head) * headWidth;
      return attentionReference({
        query: query.subarray(start, start + headWidth),
        keys: visible.map((token) => headAt(keys, headWidth, kvHead, token)),
        values: visible.map((token) => headAt(values, valueWidth, kvHead, token)),
        scale: 0.3,
        cap,
        sink: sinks === 0 ? undefined : sinkScores[head],
      });
    }).flat(),
  );
  return relativeError(bench.read(result, expected.length), expected);
}

const attentionInputs: readonly AttentionInput[] = [
  { headWidth: 64, group: 1, position: 0, splits: 1 },
  { headWidth: 128, group: 4, position: 31, splits: 1 },
  { headWidth: 80, group: 3, position: 32, splits: 2 },
  { headWidth: 96, group: 2, position: 300, splits: 4, lateMaximum: 250 },
  { headWidth: 256, group: 8, position: 150, splits: 3, window: 40 },
  { headWidth: 512, group: 2, position: 64, splits: 1, window: 64 },
  { headWidth: 64, group: 2, position: 70, splits: 1, cap: 5, valueWidth: 48 },
  { headWidth: 128, group: 2, position: 200, splits: 3, cap: 3, sinks: 6, valueWidth: 64 },
  { headWidth: 64, group: 8, position: 90, splits: 1, window: 33, sinks: 90 },
];

export const layerCases: readonly VerifyCase[] = [
  ...reductions.flatMap(({ variant, force, ...rest }) => [
    ...[4, 64, 260, 4096].map((width) => ({ ...normCase(width, force, variant), ...rest })),
    { ...groupNormCase(force, variant), ...rest },
    ...attentionInputs.map((input) => ({ ...attentionCase(input, force, variant), ...rest })),
  ]),
  gateCase({ activation: "silu", largest: 100 }),
  gateCase({ activation: "silu", largest: 100, switched: true }),
  gateCase({ activation: "gelu", largest: 10 }),
  gateCase({ activation: "clamped", largest: 100 }),
  softCapCase,
];
