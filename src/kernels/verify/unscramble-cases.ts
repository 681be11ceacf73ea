/** Heads that come back from their rotation, with and without gates. */
import { unscramble } from "../unscramble.ts";
import { relativeError, type VerifyCase } from "./case.ts";
import { scramble } from "./kv-codec.ts";
import { Random } from "./random.ts";
import { plainRows, uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

const [rows, heads] = [3, 2];

function run(bench: Workbench, headWidth: number, gated: boolean): number {
  const random = new Random(headWidth);
  const count = rows * heads;
  const wanted = Array.from({ length: count }, () => random.floats(headWidth, 5));
  // A query, which nobody must read, stands before each gate.
  const gates = Array.from({ length: count }, () => random.floats(headWidth, 3));
  const blank = new Array<number>(headWidth).fill(Number.NaN);
  const queries = Float32Array.from(gates.flatMap((gate) => [...blank, ...gate]));
  const x = bench.upload(Float32Array.from(wanted.flatMap((head) => scramble(head))));
  bench.run((context) =>
    unscramble(context, {
      x,
      gates: gated ? bench.upload(queries) : undefined,
      heads,
      headWidth,
      step: uploadStep(bench, plainRows(rows), { capacity: rows + 1 }),
      rowCapacity: rows + 1,
    }),
  );
  const expected = wanted.flatMap((head, h) =>
    Array.from(head, (value, i) => (gated ? value / (1 + Math.exp(-(gates[h]?.[i] ?? 0))) : value)),
  );
  return relativeError(bench.read(x, expected.length), expected);
}

export const unscrambleCases: readonly VerifyCase[] = [64, 80, 96, 120, 128, 256, 512].flatMap(
  (headWidth) =>
    [false, true].map((gated) => ({
      kernel: "unscramble",
      variant: "f32",
      name: `head width ${headWidth}${gated ? ", gated" : ""}`,
      bound: 1e-5,
      run: (bench: Workbench) => run(bench, headWidth, gated),
    })),
);
