/** A model file: can zinc run it, does it fit its devices, and how long may texts be. */
import { resolveTemplate } from "../../chat/prompt.ts";
import { describeCache } from "../../engine/cache-description.ts";
import { planMemory, type MemoryPlan, type PlanWishes, type StagePlan } from "../../engine/plan.ts";
import { layersText } from "../../engine/shortage.ts";
import { UserError } from "../../errors.ts";
import type { GgufFile } from "../../gguf/file.ts";
import { openModelFile, openTokenizer } from "../../index.ts";
import { kvTypesName, type KvTypeName } from "../../kernels/kv-type.ts";
import { formatBytes } from "../../math.ts";
import { describeModel } from "../../model/architectures.ts";
import type { Gpu } from "../../vulkan/gpu.ts";
import { chooseModel } from "../model-choice.ts";
import { failure, ok, skipped, warning, type CheckResult } from "./result.ts";

export interface ModelFacts {
  readonly name: string;
  readonly architecture: string;
  readonly weightBytes: number;
  readonly contextTokens: number;
  /** What each device gets, in the order of the layers. */
  readonly stages: readonly StagePlan[];
  readonly kvType: KvTypeName;
  readonly cacheBytesPerToken: number;
}

/** All checks of a file; the facts are null if it cannot be run. */
export async function checkModel(
  path: string | undefined,
  gpus: readonly Gpu[],
  wishes: Pick<PlanWishes, "memoryBytes" | "kvTypes">,
): Promise<{ results: CheckResult[]; facts: ModelFacts | null }> {
  const results: CheckResult[] = [];
  try {
    using file = await openModelFile(chooseModel(path));
    const model = describeModel(file);
    results.push(...checkText(file));
    const { name, architecture } = model.config;
    model.weights.declared();
    results.unshift(ok("model", `${name} (${architecture}), ${formatBytes(file.sizeBytes)}`));
    if (gpus.length === 0) return { results, facts: null };
    const devices = gpus.map(({ device }) => device);
    const plan = planMemory(devices, model, wishes);
    results.push(
      ok(
        "fit",
        `${formatBytes(plan.weightBytes)} of weights; the longest context is ` +
          `${plan.contextTokens} of ${model.config.contextLength} tokens ` +
          `(${formatBytes(plan.cacheBytes)}), cache ${describeCache(plan)}`,
      ),
      ...describeStages(plan),
    );
    const { weightBytes, contextTokens, cacheBytesPerToken, stages } = plan;
    const kvType = kvTypesName(plan.kvTypes);
    const sizes = { weightBytes, contextTokens, kvType, cacheBytesPerToken, stages };
    return { results, facts: { name, architecture, ...sizes } };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    results.push(failure(error.kind === "model" ? "model" : "fit", error.text));
    return { results, facts: null };
  }
}

/** A line for each of several devices. */
function describeStages({ stages }: MemoryPlan): CheckResult[] {
  if (stages.length === 1) return [];
  return stages.map(({ deviceName, layers, ...bytes }) => {
    const parts = [
      `${formatBytes(bytes.weightBytes)} of weights`,
      `${formatBytes(bytes.cacheBytes)} of cache`,
      ...(bytes.stateBytes > 0 ? [`${formatBytes(bytes.stateBytes)} of recurrent state`] : []),
      `${formatBytes(bytes.activationBytes)} of activations`,
    ];
    return ok(
      layersText(layers),
      `on ${deviceName}: ${parts.join(", ")}; ${formatBytes(bytes.totalBytes)} of the ` +
        `${formatBytes(bytes.freeBytes)} that are free`,
    );
  });
}

function checkText(file: GgufFile): CheckResult[] {
  const warnings: string[] = [];
  const tokenizer = openTokenizer(file, (message) => warnings.push(message));
  if (tokenizer === undefined)
    return [skipped("tokenizer", "the file has none; only token ids can be fed")];
  const results = [
    warnings.length === 0
      ? ok(
          "tokenizer",
          `${file.metadata.string("tokenizer.ggml.model")}, ${tokenizer.vocabSize} tokens`,
        )
      : warning("tokenizer", warnings.join("; ")),
  ];
  const template = resolveTemplate(file.metadata, tokenizer);
  if (template === undefined)
    return [...results, skipped("template", "the file has none; prompts are taken as they are")];
  if (template.problem !== undefined) {
    return [
      ...results,
      warning(
        "template",
        `unusable (${template.problem}); ChatML stands in, or give one with --template`,
      ),
    ];
  }
  const dated = template.template.mentions("strftime_now")
    ? "; it uses the date, so prompts change daily"
    : "";
  return [...results, ok("template", `usable${dated}`)];
}
