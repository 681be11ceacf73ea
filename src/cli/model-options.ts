/** From the shared flags to a loaded model. */
import { canSwitchThinking } from "../chat/thinking.ts";
import type { DraftSource } from "../engine/drafter.ts";
import { describeCache } from "../engine/cache-description.ts";
import { layersText } from "../engine/shortage.ts";
import { UserError } from "../errors.ts";
import {
  load,
  type GenerateOptions,
  type KvTypeName,
  type LanguageModel,
  type LoadOptions,
  type MemoryPlan,
  type Thinking,
} from "../index.ts";
import { formatBytes } from "../math.ts";
import type { Values } from "./flag.ts";
import type { samplingFlags } from "./flags.ts";
import { readTextFile } from "./input.ts";
import { chooseModel } from "./model-choice.ts";
import { note, warn } from "./output.ts";
import { Progress } from "./progress.ts";

export interface ModelOptions {
  readonly model: string | undefined;
  readonly device: string | undefined;
  readonly devices?: readonly string[] | undefined;
  readonly deviceMemory?: readonly number[] | undefined;
  readonly ctx?: number | undefined;
  readonly kvType?: KvTypeName | undefined;
  readonly deterministic?: boolean | undefined;
  readonly draft?: DraftSource | undefined;
  readonly template?: string | undefined;
  readonly profile?: boolean | undefined;
}

/** Loads with a progress bar; warnings go to stderr. */
export async function loadModel(
  options: ModelOptions,
  extra: LoadOptions = {},
): Promise<LanguageModel> {
  const progress = new Progress("loading");
  const template =
    options.template === undefined ? undefined : await readTextFile(options.template);
  try {
    return await load(chooseModel(options.model), {
      device: options.device,
      devices: options.devices,
      deviceMemory: options.deviceMemory,
      contextTokens: options.ctx,
      kvType: options.kvType,
      deterministic: options.deterministic,
      drafts: options.draft,
      profile: options.profile,
      // One text, after which nothing is to be remembered.
      parallel: 1,
      checkpoints: 0,
      template,
      onWarning: warn,
      onTuning: ({ deviceName, done, total }) =>
        new Progress(`tuning for ${deviceName}:`).step(done, total, "shapes"),
      onProgress: ({ doneBytes, totalBytes }) => progress.update(doneBytes, totalBytes),
      ...extra,
    });
  } finally {
    progress.clear();
  }
}

/** Says what a loaded model is and takes, on one line. */
export function describeLoaded(model: LanguageModel): void {
  const { plan } = model.engine;
  note(
    `${model.config.name} on ${describePlaces(plan)}, context ${plan.contextTokens}, ` +
      `cache ${describeCache(plan)}, loaded in ${(model.loadMs / 1000).toFixed(2)} s`,
  );
}

/** "Fake GPU: 1.2 GB on the device", or what each of several holds. */
function describePlaces({ stages, totalBytes }: MemoryPlan): string {
  const [first] = stages;
  if (stages.length === 1) {
    return `${first?.deviceName}: ${formatBytes(totalBytes)} on the device`;
  }
  const parts = stages.map(
    ({ deviceName, layers, totalBytes: bytes }) =>
      `${layersText(layers)} on ${deviceName} (${formatBytes(bytes)})`,
  );
  return `${stages.length} devices: ${parts.join(", ")}`;
}

/** Says so if the chat template does not care. `name` is what the wish was expressed with. */
export function warnOfThinking(model: LanguageModel, thinking: Thinking, name: string): void {
  if (thinking === "auto" || canSwitchThinking(model.chatFormat.template)) return;
  warn(`${name} ${thinking} changes nothing: this chat template has no switch for thinking`);
}

/** The sampling flags, as the library takes them. Throws a "usage" error for a bad bias. */
export function generateOptions(values: Values<typeof samplingFlags>): GenerateOptions {
  return {
    temperature: values.temp,
    topK: values.topK,
    topP: values.topP,
    minP: values.minP,
    repeatPenalty: values.repeatPenalty,
    presencePenalty: values.presencePenalty,
    frequencyPenalty: values.frequencyPenalty,
    seed: values.seed,
    logitBias: parseLogitBias(values.logitBias),
    maxTokens: values.maxTokens,
    stop: values.stop,
    ignoreEos: values.ignoreEos,
  };
}

/** "123=-1.5" and "42=-inf" → token ids with what is added to their logits. */
export function parseLogitBias(items: readonly string[] | undefined): Map<number, number> {
  const result = new Map<number, number>();
  for (const item of items ?? []) {
    const match = /^(\d+)=([+-]?(?:inf|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))$/i.exec(item);
    if (match === null) {
      throw new UserError(
        "usage",
        `--logit-bias ${item} is not id=bias`,
        "write --logit-bias 123=-1.5",
      );
    }
    const [, id, bias = ""] = match;
    const sign = bias.startsWith("-") ? -1 : 1;
    result.set(Number(id), /inf/i.test(bias) ? sign * Number.POSITIVE_INFINITY : Number(bias));
  }
  return result;
}
