/** The router of one row, with the choice that it ends in. */
import { dequantize } from "../../tensor/dequantize.ts";
import { choiceWords, type Routing } from "../expert-choice.ts";
import { router } from "../router.ts";
import { reductions, relativeError, type Force, type VerifyCase } from "./case.ts";
import { choiceReference } from "./expert-reference.ts";
import { Random, randomBlocks } from "./random.ts";
import { matmulReference, rmsNormReference } from "./reference.ts";
import { plainRows, uploadStep } from "./step-input.ts";
import type { Workbench } from "./workbench.ts";

interface RouterInput extends Routing {
  readonly dtype: "F32" | "F16" | "BF16";
  readonly width: number;
  /** Offsets of the logits, a bias of the choice, and factors on what it gives. */
  readonly biased?: true;
}

const plain = { scoring: "softmax", normalize: true, scale: 1 } as const;

const inputs: readonly RouterInput[] = [
  { ...plain, dtype: "F32", experts: 256, used: 8, width: 96 },
  { ...plain, dtype: "F16", experts: 13, used: 3, width: 520, scoring: "sigmoid", biased: true },
  { ...plain, dtype: "BF16", experts: 32, used: 4, width: 64, scoring: "softmax of the chosen" },
];

const epsilon = 1e-5;

function run(bench: Workbench, input: RouterInput, force: Force): number {
  const { dtype, width, biased, ...routing } = input;
  const { experts, used } = routing;
  const random = new Random(experts + width);
  const blocks = randomBlocks(dtype, experts * width, random);
  const x = random.floats(width, 3);
  const [weight, offsets] = [random.floats(width, 0.3), random.floats(experts, 0.5)];
  const [bias, factors] = [random.floats(experts, 0.5), random.floats(experts, 2)];
  const choices = bench.floats(choiceWords(used));
  const counter = bench.upload(new Float32Array(1));
  bench.run((context) =>
    router(
      { ...context, force },
      {
        w: bench.matrix("router", dtype, experts, width, blocks),
        x: bench.upload(x),
        norm: bench.vector("norm", weight),
        epsilon,
        logits: bench.floats(experts),
        routing,
        choices,
        counter,
        step: uploadStep(bench, plainRows(1)),
        ...(biased && {
          offsets: bench.vector("offsets", offsets),
          bias: bench.vector("bias", bias),
          factors: bench.vector("factors", factors),
        }),
      },
    ),
  );
  const normed = Float32Array.from(rmsNormReference(x, weight, epsilon));
  const logits = matmulReference(dequantize(dtype, blocks), normed, experts, width, 1).map(
    (logit, i) => logit + (biased ? (offsets[i] ?? 0) : 0),
  );
  const expected = choiceReference(
    logits,
    routing,
    biased ? bias : undefined,
    biased ? factors : undefined,
  );
  const found = bench.read(choices, choiceWords(used));
  const words = new Uint32Array(found.buffer);
  const isRight = expected.every(({ expert }, i) => words[2 * i] === expert);
  if (!isRight || bench.read(counter, 1)[0] !== 0) return Number.POSITIVE_INFINITY;
  return relativeError(
    expected.map((_choice, i) => found[2 * i + 1] ?? Number.NaN),
    expected.map((choice) => choice.weight),
  );
}

export const routerCases: readonly VerifyCase[] = reductions.flatMap(
  ({ variant, force, ...rest }) =>
    inputs.map((input) => ({
      kernel: "router",
      variant: `${input.dtype} ${variant}`,
      name: `${input.used} of ${input.experts}, width ${input.width}, ${input.scoring}`,
      bound: 1e-5,
      ...rest,
      run: (bench: Workbench) => run(bench, input, force),
    })),
);
