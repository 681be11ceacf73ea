/** The choice of a token: the best, the order of equals, draws that follow the probabilities. */
import { hostBytes } from "../../vulkan/buffer.ts";
import {
  candidatesMax,
  sample,
  sampleScratchBytes,
  samplingBytes,
  vocabularyShares,
  writeSamplings,
  type OutputSampling,
} from "../sample.ts";
import type { VerifyCase } from "./case.ts";
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

/** Draws each of the `topK` best in turn: at such a temperature they are equally likely. */
function eachOf(topK: number): OutputSampling[] {
  return Array.from({ length: topK }, (_unused, i) => ({
    ...plain,
    temperature: 1e30,
    topK,
    random: (i + 0.5) / topK,
  }));
}

const { invocations, partTokens: part } = vocabularyShares;

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
  {
    name: "each of the 40 best of 9001",
    vocabulary: 9001,
    logits: (random) => random.between(-20, 20),
    outputs: eachOf(40),
  },
  {
    name: "each of the best of 9001 ascending logits",
    vocabulary: 9001,
    logits: (_random, token) => token / 8,
    outputs: eachOf(candidatesMax),
  },
  {
    name: "each of the best of 9001 descending logits",
    vocabulary: 9001,
    logits: (_random, token) => -token / 8,
    outputs: eachOf(candidatesMax),
  },
  {
    name: "each of the first of 9001 zeros of either sign",
    vocabulary: 9001,
    logits: (_random, token) => (token % 3 === 0 ? -0 : 0),
    outputs: eachOf(candidatesMax),
  },
  {
    name: "each of the best, all in the last part",
    vocabulary: 3 * part + 77,
    logits: (random, token) => random.between(0, 1) + (token < 3 * part ? 0 : 2),
    outputs: eachOf(candidatesMax),
  },
  {
    name: "each of the best, all with as few invocations as can hold them",
    vocabulary: 2 * part,
    logits: (random, token) => random.between(0, 1) + (token % invocations < 4 ? 2 : 0),
    outputs: eachOf(candidatesMax),
  },
  {
    name: "each of the best, where 16 times as many reach the bound in a part",
    vocabulary: 3 * part,
    logits: (_random, token) => token % invocations,
    outputs: eachOf(candidatesMax),
  },
  {
    name: "the best, where 64 times as many reach the bound among 100 parts",
    vocabulary: 100 * part - 17,
    logits: (_random, token) => -Math.floor(token / part),
    outputs: eachOf(candidatesMax).filter((_output, i) => i % 21 === 0),
  },
  {
    name: "the best of more parts than a workgroup has invocations",
    vocabulary: 132 * part + 1,
    logits: (random, token) => random.between(0, 1) + Math.floor(token / part / 130),
    outputs: eachOf(candidatesMax).filter((_output, i) => i % 21 === 0),
  },
  {
    name: "each of 5 finite logits of 6000, for a top-k of 40",
    vocabulary: 6000,
    logits: (_random, token) => (token % 1201 === 1200 ? token / 100 : Number.NEGATIVE_INFINITY),
    outputs: [plain, ...eachOf(4).map((output) => ({ ...output, topK: 40 }))],
  },
  {
    name: "the first of 3000, where none can be chosen",
    vocabulary: 3000,
    logits: () => Number.NEGATIVE_INFINITY,
    outputs: [plain, { ...plain, temperature: 1, topK: 40, random: 0.9 }],
  },
  {
    name: "the lowest floats and denormal ones",
    vocabulary: 2500,
    logits: (_random, token) => (token < 2498 ? -3.4028234663852886e38 : (token - 2498) * 1e-44),
    outputs: [plain, { ...plain, temperature: 1, topK: 40, random: 0.4 }, ...eachOf(7)],
  },
  {
    name: "outputs of one step, each with settings of its own",
    vocabulary: 4321,
    logits: (random) => random.between(-6, 6),
    outputs: [
      plain,
      { ...plain, temperature: 0.7, topK: 40, topP: 0.5, random: 0.6 },
      { ...plain, temperature: 2, topK: candidatesMax, minP: 0.9, random: 0.6 },
      { ...plain, topK: 2, biases: new Map([[4320, 40]]) },
      { ...plain, temperature: 1, topK: 1, random: 0.5 },
      {
        ...plain,
        temperature: 9,
        topK: 3,
        random: 0.9,
        biases: new Map([...Array(500).keys()].map((i) => [i * 8, -20])),
      },
    ],
  },
];

function run(bench: Workbench, { vocabulary, logits, outputs }: SampleInput): number {
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
    sample(context, {
      logits: bench.upload(values),
      samplings,
      scratch: bench.upload(new Uint8Array(sampleScratchBytes(capacity, vocabulary))),
      tokens,
      latest,
      step,
      outputCapacity: capacity,
      vocabulary,
    }),
  );
  const chosen = new Uint32Array(bench.read(tokens).buffer);
  const fed = new Uint32Array(bench.read(latest).buffer);
  const wrong = outputs.filter((output, i) => {
    const expected = sampleReference(values.subarray(i * vocabulary, (i + 1) * vocabulary), output);
    return chosen[i] !== expected || fed[i] !== expected;
  });
  return wrong.length;
}

export const sampleCases: readonly VerifyCase[] = inputs.map((input) => ({
  kernel: "sample",
  variant: "token",
  name: input.name,
  bound: 0,
  run: (bench: Workbench) => run(bench, input),
}));
