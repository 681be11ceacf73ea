/** `zinc run`: complete one prompt and print it as it is made. */
import type { GenerationResult, LanguageModel, Prompt } from "../index.ts";
import { UserError } from "../errors.ts";
import { command } from "./command.ts";
import { clock } from "./clock.ts";
import { toggle, type Values } from "./flag.ts";
import {
  contextFlags,
  deviceFlags,
  modelEnvironment,
  modelFlags,
  outputFlags,
  promptFlags,
  samplingFlags,
} from "./flags.ts";
import { readStdin } from "./input.ts";
import { runExitCodes } from "./manual.ts";
import { describeLoaded, loadModel, parseLogitBias } from "./model-options.ts";
import { note, setQuiet, writeOut } from "./output.ts";
import { printProfile } from "./profile.ts";
import { signalExitCode, stopGently, stopSignal } from "./signals.ts";

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
  description: `
    Puts the prompt into the model's chat template, if it has one, and prints the answer as it
    is made. Text on stdin comes before the prompt, on lines of its own. The name of the command
    may be left out.

    The answer goes to stdout and everything else to stderr. Ctrl+C ends the answer with what
    there is of it.
  `,
  examples: {
    'zinc --prompt "Why is the sky blue?"': "ask the active model",
    'zinc -m qwen3.5-2b --prompt "Hello" --temp 0': "the same answer each time",
    'zinc -p "Sum this up." < report.txt': "a question about a text",
    'zinc -m model.gguf --raw -p "def fib(n):" -n 64': "go on with a text, without a template",
    "zinc -p Hello --json | jq .timings": "one JSON object instead of text",
  },
  environment: { ...modelEnvironment, ZINC_NOW: "the time that templates are told; default now" },
  exitCodes: runExitCodes,
  flags,
  remedy: 'put a prompt behind --prompt, as in --prompt "Hello", and a command in front',
  async run(values) {
    setQuiet(values.quiet === true);
    const logitBias = parseLogitBias(values.logitBias);
    const now = clock();
    const prompt = await readPrompt(values);
    using model = await loadModel(values);
    if (values.json !== true) describeLoaded(model);
    stopGently();
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
    else await writeOut(model.hasTokenizer ? "\n" : `${result.tokens.join(",")}\n`);
    if (values.json !== true) summarize(result);
    if (values.profile === true) printProfile(model.engine);
    return signalExitCode() ?? 0;
  },
});

async function readPrompt(values: Values<typeof flags>): Promise<Prompt> {
  const { tokens, prompt, raw, template } = values;
  if (tokens !== undefined) {
    if (prompt !== undefined) throw exclusive("--tokens", "--prompt");
    return { tokens };
  }
  if (raw === true && template !== undefined) throw exclusive("--raw", "--template");
  const text = joinPrompt(await readStdin(), prompt ?? "", raw === true);
  if (text.trim() !== "") return text;
  throw new UserError("usage", "the prompt is empty", 'say something, as in --prompt "Hello"');
}

function exclusive(one: string, other: string): UserError {
  return new UserError("usage", `${one} and ${other} exclude each other`, "give one of them");
}

/**
 * What stands on stdin comes before `--prompt`, on lines of its own. The line feed that `echo` puts
 * at its end is nobody's prompt, but `raw` takes all as it is.
 */
function joinPrompt(piped: string, prompt: string, raw: boolean): string {
  if (piped === "") return prompt;
  if (prompt === "") return raw ? piped : piped.replace(/\r?\n$/, "");
  return piped.endsWith("\n") ? piped + prompt : `${piped}\n${prompt}`;
}

function report(model: LanguageModel, result: GenerationResult) {
  const { text, tokens, promptTokens, finishReason, prefillMs, decodeMs } = result;
  const { prefill, decode } = speeds(result);
  return {
    text,
    tokens,
    promptTokens,
    finishReason,
    timings: {
      loadMs: model.loadMs,
      prefillMs,
      decodeMs,
      prefillTokS: prefill,
      decodeTokS: decode,
    },
  };
}

/**
 * Tokens a second. The first token comes with the prefill, so it is not counted; null where there
 * is nothing to measure.
 */
function speeds({ promptTokens, prefillMs, tokens, decodeMs }: GenerationResult) {
  return {
    prefill: prefillMs === 0 ? null : promptTokens / (prefillMs / 1000),
    decode: tokens.length < 2 ? null : (tokens.length - 1) / (decodeMs / 1000),
  };
}

function summarize(result: GenerationResult): void {
  const { prefill, decode } = speeds(result);
  const at = (speed: number | null) => (speed === null ? "" : ` at ${speed.toFixed(1)} tok/s`);
  const count = result.tokens.length;
  note(
    `${result.promptTokens} prompt tokens${at(prefill)}, ` +
      `${count} ${count === 1 ? "token" : "tokens"}${at(decode)}`,
  );
}
