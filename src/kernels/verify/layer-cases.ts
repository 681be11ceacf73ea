/** Norms, gated activations and soft caps. */
import { glu } from "../glu.ts";
import type { GateFunction } from "../gate.ts";
import { rmsNorm } from "../rms-norm.ts";
import { softCap } from "../soft-cap.ts";
import { reductions, relativeError, type Force, type VerifyCase } from "./case.ts";
import { Random } from "./random.ts";
import { gluReference, rmsNormReference } from "./reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";

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

/** Groups of a row, added to what is there; behind each row is something else. */
function groupNormCase(force: Force, variant: string): Omit<VerifyCase, "needs"> {
  const [rows, groups, width, stride] = [2, 3, 68, 212];
  return {
    kernel: "rms_norm",
    variant,
    name: "2 rows of 3 groups, width 68, added and halved, with room behind",
    bound: 1e-5,
    run(bench) {
      const random = new Random(3);
      const x = random.floats(rows * groups * width, 10);
      const before = random.floats(rows * stride, 10);
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
            stride,
            accumulate: true,
            factor: 0.5,
          },
        ),
      );
      const normed = rmsNormReference(x, weight, 1e-5);
      const expected = before.map((value, i) => {
        const [row, column] = [Math.floor(i / stride), i % stride];
        const added = normed[row * groups * width + column] ?? 0;
        return column < groups * width ? 0.5 * (value + added) : value;
      });
      return relativeError(bench.read(y), expected);
    },
  };
}

interface GateInput {
  readonly activation: GateFunction;
  readonly largest: number;
}

function gateCase({ activation, largest }: GateInput): VerifyCase {
  const [width, stride] = [260, 300];
  return {
    kernel: "glu",
    variant: activation,
    name: `3 of 4 rows, width ${width}, gates from -${largest} to ${largest}`,
    bound: 1e-5,
    run(bench) {
      const random = new Random(7);
      const gate = random.floats(4 * width, largest);
      const up = random.floats(4 * stride);
      const step = uploadStep(bench, plainRows(3), { capacity: 4 });
      const y = bench.floats(4 * width);
      bench.run((context) =>
        glu(context, {
          gate: bench.upload(gate),
          up: bench.upload(up),
          y,
          step,
          rowCapacity: 4,
          width,
          activation,
          upStride: stride,
        }),
      );
      const rowOf = (i: number) => Math.floor(i / width);
      const packed = gate.map((_unused, i) => up[rowOf(i) * stride + (i % width)] ?? 0);
      const expected = gluReference(gate, packed, activation);
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

export const layerCases: readonly VerifyCase[] = [
  ...reductions.flatMap(({ variant, force, ...rest }) => [
    ...[4, 64, 260, 4096].map((width) => ({ ...normCase(width, force, variant), ...rest })),
    { ...groupNormCase(force, variant), ...rest },
  ]),
  gateCase({ activation: "silu", largest: 100 }),
  gateCase({ activation: "gelu", largest: 10 }),
  gateCase({ activation: "clamped", largest: 100 }),
  softCapCase,
];
