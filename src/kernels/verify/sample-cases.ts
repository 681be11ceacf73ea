/** The choice of a token: the best, the order of equals, draws that follow the probabilities. */
import { hostBytes } from "../../vulkan/buffer.ts";
import {
  candidatesMax,
  sample,
  sampleScratchBytes,
  samplingBytes,
  writeSamplings,
  type OutputSampling,
} from "../sample.ts";
import { reductions, type Force, type VerifyCase } from "./case.ts";
import { Random } from "./random.ts";
import { sampleReference } from "./reference.ts";
import { uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

const plain = { temperature: 0, topK: 1, topP: 1, minP: 0, random: 0, biases: new Map() };

interface SampleInput {
  readonly name: string;
  readonly vocabulary: number;
  /** Logits of one output. */
  readonly logits: (random: Random, token: number) => number;
  readonly outputs: readonly OutputSampling[];
}

const randoms = [0, 0.1, 0.35, 0.5, 0.77, 0.99999];

const inputs: readonly SampleInput[] = [
  {
    name: "the best of 5000 negative logits, one banned, one raised",
    vocabulary: 5000,
    logits: (random) => random.between(-60, -50),
    outputs: [
      { ...plain },
      { ...plain, biases: new Map([[4321, 30]]) },
      { ...plain, biases: new Map([[7, Number.NEGATIVE_INFINITY]]) },
    ],
  },
  {
    name: "the first of 2049 equal logits",
    vocabulary: 2049,
    logits: () => -1,
    outputs: [plain, { ...plain, temperature: 1, topK: 40 }],
  },
  {
    name: "40 of 4099 with top-p and min-p",
    vocabulary: 4099,
    logits: (random) => random.between(-4, 4),
    outputs: randoms.map((random) => ({
      ...plain,
      temperature: 0.8,
      topK: 40,
      topP: 0.9,
      minP: 0.3,
      random,
    })),
  },
  {
    name: `${candidatesMax} of 300 at a high temperature`,
    vocabulary: 300,
    logits: (random) => random.between(-9, 9),
    outputs: randoms.map((random) => ({ ...plain, temperature: 5, topK: candidatesMax, random })),
  },
  {
    name: "3 of 2, at temperature 1e-9",
    vocabulary: 2,
    logits: (_random, token) => token,
    outputs: [{ ...plain, temperature: 1e-9, topK: 3, random: 0.9 }],
  },
];

function run(bench: Workbench, { vocabulary, logits, outputs }: SampleInput, force: Force): number {
  const random = new Random(vocabulary);
  const values = Float32Array.from({ length: outputs.length * vocabulary }, (_unused, i) =>
    logits(random, i % vocabulary),
  );
  const capacity = outputs.length + 1;
  const rows = outputs.map((_output, i) => ({ token: 0, position: i, sequence: i }));
  const step = uploadStep(bench, rows, { capacity, outputs: outputs.map((_output, i) => i) });
  const samplings = bench.floats(samplingBytes(capacity) / 4);
  writeSamplings(hostBytes(samplings), capacity, outputs);
  const tokens = bench.floats(capacity);
  const latest = bench.floats(capacity);
  bench.run((context) =>
    sample(
      { ...context, force },
      {
        logits: bench.upload(values),
        samplings,
        scratch: bench.upload(new Uint8Array(sampleScratchBytes(capacity, vocabulary))),
        tokens,
        latest,
        step,
        outputCapacity: capacity,
        vocabulary,
      },
    ),
  );
  const chosen = new Uint32Array(bench.read(tokens).buffer);
  const fed = new Uint32Array(bench.read(latest).buffer);
  const wrong = outputs.filter((output, i) => {
    const expected = sampleReference(values.subarray(i * vocabulary, (i + 1) * vocabulary), output);
    return chosen[i] !== expected || fed[i] !== expected;
  });
  return wrong.length;
}

export const sampleCases: readonly VerifyCase[] = reductions.flatMap(
  ({ variant, force, ...rest }) =>
    inputs.map((input) => ({
      kernel: "sample",
      variant,
      name: input.name,
      bound: 0,
      ...rest,
      run: (bench: Workbench) => run(bench, input, force),
    })),
);
