/** `zinc run`: complete one prompt and print it as it is made. */
import type {
  GenerateOptions,
  Generation,
  GenerationResult,
  LanguageModel,
  Part,
  Prompt,
} from "../index.ts";
import { UserError } from "../errors.ts";
import { readFormat } from "./answer-format.ts";
import { AnswerPrinter } from "./answer-printer.ts";
import { command } from "./command.ts";
import { clock } from "./clock.ts";
import { toggle, type Values } from "./flag.ts";
import {
  chatFlags,
  contextFlags,
  draftFlags,
  modelEnvironment,
  modelFlags,
  outputFlags,
  placeFlags,
  promptFlags,
  samplingFlags,
  shapeFlags,
} from "./flags.ts";
import { readStdin } from "./input.ts";
import { runExitCodes } from "./manual.ts";
import { describeLoaded, generateOptions, loadModel, warnOfThinking } from "./model-options.ts";
import { note, setQuiet, writeOut } from "./output.ts";
import { printProfile } from "./profile.ts";
import { signalExitCode, stopGently, stopSignal } from "./signals.ts";
import { speedsOf, summaryOf } from "./speeds.ts";
import { readTools } from "./tools-file.ts";

const flags = {
  ...modelFlags,
  ...promptFlags,
  ...chatFlags,
  ...shapeFlags,
  ...samplingFlags,
  ...contextFlags,
  ...draftFlags,
  ...placeFlags,
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
    'zinc -p "Your move?" --grammar-file moves.gbnf': "an answer of a given form",
    "zinc -p Hello --json | jq .timings": "one JSON object instead of text",
  },
  environment: { ...modelEnvironment, ZINC_NOW: "the time that templates are told; default now" },
  exitCodes: runExitCodes,
  flags,
  remedy: 'put a prompt behind --prompt, as in --prompt "Hello", and a command in front',
  async run(values) {
    setQuiet(values.quiet === true);
    const prompt = await readPrompt(values);
    const format = await readFormat(values);
    const options = { ...generateOptions(values), format, signal: stopSignal, now: clock() };
    const tools = values.tools === undefined ? undefined : await readTools(values.tools);
    using model = await loadModel(values);
    const generation = begin(model, prompt, values, tools, options);
    if (values.json !== true) describeLoaded(model);
    stopGently();
    if (values.json === true) {
      await writeOut(`${JSON.stringify(report(model, await generation.result()))}\n`);
    } else {
      const printer = new AnswerPrinter();
      for await (const piece of generation) {
        await printer.print(typeof piece === "string" ? { type: "text", text: piece } : piece);
      }
      const result = await generation.result();
      if (model.hasTokenizer) await printer.end();
      else await writeOut(`${result.tokens.join(",")}\n`);
      note(summaryOf(result));
    }
    if (values.profile === true) printProfile(model.engine);
    return signalExitCode() ?? 0;
  },
});

/** A text goes through the chat template if there is one, and its answer is split then. */
function begin(
  model: LanguageModel,
  prompt: Prompt,
  { raw = false, system, think: thinking }: Pick<Values<typeof flags>, "raw" | "system" | "think">,
  tools: readonly unknown[] | undefined,
  options: GenerateOptions,
): Generation | Generation<Part> {
  const isChatWanted = [system, thinking, tools].some((value) => value !== undefined);
  const isChat =
    typeof prompt === "string" && !raw && (isChatWanted || model.template !== undefined);
  if (!isChat) return model.generate(prompt, { ...options, raw });
  if (thinking !== undefined) warnOfThinking(model, thinking, "--think");
  const question = { role: "user", content: prompt };
  const messages =
    system === undefined ? [question] : [{ role: "system", content: system }, question];
  return model.chat({ messages, tools, thinking }, options);
}

async function readPrompt(values: Values<typeof flags>): Promise<Prompt> {
  const { tokens, prompt, raw, template } = values;
  if (tokens !== undefined) {
    if (prompt !== undefined) throw exclusive("--tokens", "--prompt");
    requireChat("--tokens", values);
    return { tokens };
  }
  if (raw === true) {
    if (template !== undefined) throw exclusive("--raw", "--template");
    requireChat("--raw", values);
  }
  const text = joinPrompt(await readStdin(), prompt ?? "", raw === true);
  if (text.trim() !== "") return text;
  throw new UserError("usage", "the prompt is empty", 'say something, as in --prompt "Hello"');
}

/** `flag` excludes what only a chat template can say. */
function requireChat(flag: string, values: Values<typeof flags>): void {
  for (const key of Object.keys(chatFlags) as (keyof typeof chatFlags)[]) {
    if (values[key] !== undefined) throw exclusive(flag, `--${key}`);
  }
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
  const { text, reasoning, toolCalls, tokens, promptTokens, finishReason } = result;
  const { prefillMs, decodeMs, draftedTokens, acceptedTokens } = result;
  const { prefill, decode } = speedsOf(result);
  return {
    text,
    reasoning,
    toolCalls,
    tokens,
    promptTokens,
    finishReason,
    drafts: { drafted: draftedTokens, accepted: acceptedTokens },
    timings: {
      loadMs: model.loadMs,
      prefillMs,
      decodeMs,
      prefillTokS: prefill,
      decodeTokS: decode,
    },
  };
}
