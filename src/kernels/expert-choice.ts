/** The router of a mixture of experts: which experts take a row, and with what weight. */
import { invariant } from "../errors.ts";
import type { Vector } from "../tensor/tensor.ts";
import type { BufferSlice } from "../vulkan/buffer.ts";
import { f32, u32 } from "../vulkan/layout.ts";
import { defineKernel, launch, reads, writes, type KernelContext } from "./kernel.ts";
import { teamOf } from "./reduction.ts";

export const expertChoiceKernel = defineKernel("expert_choice", {
  logits: reads,
  bias: reads,
  factors: reads,
  choices: writes,
  step: reads,
  used: u32,
  scale: f32,
});

/** Scores lie in registers, a share for each invocation. */
export const expertsMax = 512;
export const expertsUsedMax = 16;

/** SCORING in shaders/expert_choice.comp. */
const scorings = { softmax: 0, sigmoid: 1, "softmax of the chosen": 2 } as const;

/** How a model's router decides. */
export interface Routing {
  readonly experts: number;
  /** Experts that take a row. */
  readonly used: number;
  readonly scoring: keyof typeof scorings;
  /** Weights are divided by their sum. */
  readonly normalize: boolean;
  /** Factor on all weights. */
  readonly scale: number;
}

export interface ExpertChoice {
  /** [rowCapacity, experts] */
  readonly logits: BufferSlice;
  /** [experts]: added to the scores for the choice, not for the weights. */
  readonly bias?: Vector | undefined;
  /** [experts]: on the weight of each. */
  readonly factors?: Vector | undefined;
  readonly routing: Routing;
  /** [rowCapacity, used, expert | weight], written. */
  readonly choices: BufferSlice;
  readonly step: BufferSlice;
  readonly rowCapacity: number;
}

/** Words of `choices` a row. */
export function choiceWords(used: number): number {
  return 2 * used;
}

/** The specialization constants that shaders/include/choose.glsl asks for. */
export function choiceConstants(
  choice: Pick<ExpertChoice, "routing" | "bias" | "factors">,
): number[] {
  const { routing, bias, factors } = choice;
  const { experts, used, scoring, normalize } = routing;
  invariant(
    experts <= expertsMax && used <= Math.min(experts, expertsUsedMax),
    `expertChoice: ${used} of ${experts}`,
  );
  const flags = [bias !== undefined, normalize, factors !== undefined];
  return [experts, scorings[scoring], ...flags.map(Number)];
}

export function expertChoice(context: KernelContext, choice: ExpertChoice): void {
  const { logits, bias, factors, routing, choices, step, rowCapacity } = choice;
  const { used, scale } = routing;
  invariant(
    choices.byteSize >= rowCapacity * choiceWords(used) * 4,
    "expertChoice: choices are too small",
  );
  const { reduction, lanes, subgroupSize } = teamOf(context);
  launch(context, expertChoiceKernel, {
    shader: `expert_choice.${reduction}`,
    constants: [lanes, ...choiceConstants(choice)],
    subgroupSize,
    parameters: {
      logits,
      choices,
      step,
      used,
      scale,
      ...(bias && { bias: bias.data }),
      ...(factors && { factors: factors.data }),
    },
    groups: [rowCapacity],
    label: "choice of experts",
  });
}
