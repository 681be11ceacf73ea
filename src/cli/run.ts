/** `zinc run`: complete one prompt and print it as it is made. */
import type { GenerationResult, LanguageModel, Prompt } from "../index.ts";
import { UserError } from "../errors.ts";
import { command } from "./command.ts";
import { now } from "./clock.ts";
import { toggle, type Values } from "./flag.ts";
import {
  contextFlags,
  deviceFlags,
  modelFlags,
  outputFlags,
  promptFlags,
  samplingFlags,
} from "./flags.ts";
import { readStdin } from "./input.ts";
import { describeLoaded, loadModel, parseLogitBias } from "./model-options.ts";
import { note, setQuiet, writeOut } from "./output.ts";
import { printProfile } from "./profile.ts";
import { signalExitCode, stopSignal } from "./signals.ts";

const flags = {
  ...modelFlags,
  ...promptFlags,
  ...samplingFlags,
  ...contextFlags,
  ...deviceFlags,
  profile: toggle("time every kernel of the last step"),
  ...outputFlags,
} as const;

export const runCommand = command({
  name: "run",
  summary: "Complete one prompt",
  flags,
  async run(values) {
    setQuiet(values.quiet === true || values.json === true);
    const logitBias = parseLogitBias(values.logitBias);
    const prompt = await readPrompt(values);
    using model = await loadModel(values);
    describeLoaded(model);
    const generation = model.generate(prompt, {
      temperature: values.temp,
      topK: values.topK,
      topP: values.topP,
      minP: values.minP,
      repeatPenalty: values.repeatPenalty,
      presencePenalty: values.presencePenalty,
      frequencyPenalty: values.frequencyPenalty,
      seed: values.seed,
      logitBias,
      maxTokens: values.maxTokens,
      stop: values.stop,
      raw: values.raw,
      ignoreEos: values.ignoreEos,
      signal: stopSignal,
      now,
    });
    for await (const piece of generation) if (values.json !== true) await writeOut(piece);
    const result = await generation.result();
    if (values.json === true) await writeOut(`${JSON.stringify(report(model, result))}\n`);
    else await writeOut("\n");
    summarize(result);
    if (values.profile === true) printProfile(model.engine);
    return signalExitCode() ?? 0;
  },
});

/** What stands on stdin comes before `--prompt`. */
async function readPrompt(values: Values<typeof flags>): Promise<Prompt> {
  if (values.tokens !== undefined) {
    if (values.prompt !== undefined) {
      throw new UserError("usage", "--tokens and --prompt exclude each other", "give one of them");
    }
    return { tokens: values.tokens };
  }
  const piped = await readStdin();
  const text = [piped, values.prompt ?? ""].filter((part) => part !== "").join("\n");
  if (text.trim() === "") {
    throw new UserError("usage", "the prompt is empty", 'say something, as in --prompt "Hello"');
  }
  return text;
}

function report(model: LanguageModel, result: GenerationResult) {
  const { text, tokens, promptTokens, finishReason, prefillMs, decodeMs } = result;
  return {
    text,
    tokens,
    promptTokens,
    finishReason,
    timings: {
      loadMs: model.loadMs,
      prefillMs,
      decodeMs,
      prefillTokS: promptTokens / (prefillMs / 1000),
      decodeTokS: decodeSpeed(result),
    },
  };
}

/**
 * The first token comes with the prefill, so it is not counted; null where there is nothing to
 * measure.
 */
function decodeSpeed({ tokens, decodeMs }: GenerationResult): number | null {
  return tokens.length < 2 ? null : (tokens.length - 1) / (decodeMs / 1000);
}

function summarize(result: GenerationResult): void {
  const { promptTokens, prefillMs, tokens } = result;
  const speed = decodeSpeed(result);
  note(
    `${promptTokens} prompt tokens at ${(promptTokens / (prefillMs / 1000)).toFixed(1)} tok/s, ` +
      `${tokens.length} tokens${speed === null ? "" : ` at ${speed.toFixed(1)} tok/s`}`,
  );
}
