/** Norms, activations, rotary embedding with the cache, and attention. */
import { halfToFloat } from "../../tensor/half.ts";
import { glu } from "../glu.ts";
import type { GateFunction } from "../gate.ts";
import { rmsNorm } from "../rms-norm.ts";
import { ropeCache, rotaryTurns } from "../rope-cache.ts";
import { blockTokens } from "../step.ts";
import { reductions, relativeError, type Force, type VerifyCase } from "./case.ts";
import { Random } from "./random.ts";
import { rmsNormReference, ropeReference, gluReference } from "./reference.ts";
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

function gluCase(activation: GateFunction): VerifyCase {
  return {
    kernel: "glu",
    variant: activation,
    name: "3 of 4 rows, width 260, gates from -100 to 100",
    bound: 1e-5,
    run(bench) {
      const random = new Random(7);
      const gate = random.floats(4 * 260, 100);
      const up = random.floats(4 * 260);
      const step = uploadStep(bench, plainRows(3), { capacity: 4 });
      const y = bench.floats(4 * 260);
      bench.run((context) =>
        glu(context, {
          gate: bench.upload(gate),
          up: bench.upload(up),
          activation,
          y,
          step,
          rowCapacity: 4,
          width: 260,
        }),
      );
      const expected = gluReference(gate, up, activation).subarray(0, 3 * 260);
      return relativeError(bench.read(y, 3 * 260), expected);
    },
  };
}

/** Positions far apart, in two sequences whose cache blocks are interleaved and out of order. */
const ropeRows = [
  { token: 0, position: 0, sequence: 0 },
  { token: 0, position: 33, sequence: 1 },
  { token: 0, position: 95, sequence: 0 },
];
const ropeTables = [
  [5, 0, 3],
  [4, 1, 2],
];

function ropeCase(
  pairs: "neighbours" | "halves",
  headWidth: number,
  rotary: number,
  far: number,
): VerifyCase {
  const [heads, kvHeads] = [3, 2];
  return {
    kernel: "rope_cache",
    variant: pairs,
    name: `head width ${headWidth}, ${rotary} rotated, frequencies times ${far}`,
    bound: 1e-3,
    run(bench) {
      const random = new Random(headWidth + rotary);
      const radians = Array.from(
        { length: rotary / 2 },
        (_, i) => far * 10_000 ** ((-2 * i) / rotary),
      );
      const [query, key, value] = [heads, kvHeads, kvHeads].map((count) =>
        random.floats(ropeRows.length * count * headWidth),
      ) as [Float32Array, Float32Array, Float32Array];
      const rotatedQuery = bench.upload(query);
      const words = (6 * kvHeads * blockTokens * headWidth) / 2;
      const [keyCache, valueCache] = [bench.floats(words), bench.floats(words)];
      const step = uploadStep(bench, ropeRows, { tables: ropeTables });
      bench.run((context) =>
        ropeCache(context, {
          query: rotatedQuery,
          key: bench.upload(key),
          value: bench.upload(value),
          keyCache,
          valueCache,
          frequencies: bench.upload(rotaryTurns(radians)),
          step,
          rowCapacity: ropeRows.length,
          heads,
          kvHeads,
          headWidth,
          rotary,
          pairs,
        }),
      );
      const rotate = (source: Float32Array, count: number) =>
        ropeRows.flatMap(({ position }, row) =>
          Array.from({ length: count }, (_unused, head) => {
            const start = (row * count + head) * headWidth;
            return ropeReference(
              source.subarray(start, start + headWidth),
              position,
              radians,
              pairs,
            );
          }).flat(),
        );
      return Math.max(
        // Queries are floats and must be far closer than the halves in the cache.
        relativeError(bench.read(rotatedQuery, query.length), rotate(query, heads)) * 500,
        relativeError(readCache(bench, keyCache, kvHeads, headWidth), rotate(key, kvHeads)),
        relativeError(readCache(bench, valueCache, kvHeads, headWidth), value),
      );
    },
  };
}

/** What the rows of `ropeRows` left in a cache, row by row and head by head. */
function readCache(
  bench: Workbench,
  cache: Parameters<Workbench["read"]>[0],
  kvHeads: number,
  headWidth: number,
) {
  const halves = new Uint16Array(bench.read(cache).buffer);
  return ropeRows.flatMap(({ position, sequence }) => {
    const block = ropeTables[sequence]?.[Math.floor(position / blockTokens)] ?? 0;
    return Array.from({ length: kvHeads }, (_unused, head) => {
      const slot = ((block * kvHeads + head) * blockTokens + (position % blockTokens)) * headWidth;
      return Array.from(halves.subarray(slot, slot + headWidth), halfToFloat);
    }).flat();
  });
}

export const layerCases: readonly VerifyCase[] = [
  ...reductions.flatMap(({ variant, force, ...rest }) => [
    ...[4, 64, 260, 4096].map((width) => ({ ...normCase(width, force, variant), ...rest })),
  ]),
  gluCase("silu"),
  gluCase("gelu"),
  ropeCase("neighbours", 64, 64, 1),
  ropeCase("halves", 128, 128, 1),
  ropeCase("halves", 80, 32, 1000),
  ropeCase("neighbours", 128, 64, 1),
];
