/**
 * One text in the making, as the library's users see it: pieces to iterate over, and a result in
 * the end.
 */
import { encodeChat, encodeRaw } from "./prompt.ts";
import { StopStrings } from "./stop-strings.ts";
import type { ChatTemplate } from "./template.ts";
import type { Engine } from "../engine/engine.ts";
import type { FinishReason } from "../engine/generation.ts";
import { HostSampler } from "../engine/sampler.ts";
import { completeSampling, type Sampling } from "../engine/sampling.ts";
import { UserError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";

/** Text, or token ids as they are. */
export type Prompt = string | { readonly tokens: readonly number[] };

export type GenerateOptions = { readonly [K in keyof Sampling]?: Sampling[K] | undefined } & {
  /** Tokens of the answer; as many as the context has room for by default. */
  readonly maxTokens?: number | undefined;
  /** Strings that end the answer and are not part of it. */
  readonly stop?: readonly string[] | undefined;
  /** Take the prompt as it is, without the chat template; special tokens in it count. */
  readonly raw?: boolean | undefined;
  /** Go on behind the tokens that usually end an answer. */
  readonly ignoreEos?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Tells the time to chat templates; the system's clock by default. */
  readonly now?: (() => Date) | undefined;
};

export interface GenerationResult {
  readonly text: string;
  readonly tokens: readonly number[];
  readonly promptTokens: number;
  /** Of the prompt, computed for an earlier text and not again. */
  readonly cachedTokens: number;
  readonly finishReason: FinishReason;
  readonly prefillMs: number;
  /** From the first token to the last. */
  readonly decodeMs: number;
}

export class Generation implements AsyncIterable<string> {
  readonly #engine: Engine;
  readonly #tokenizer: Tokenizer | undefined;
  readonly #options: GenerateOptions;
  readonly #prompt: readonly number[];
  readonly #sampling: Sampling;
  readonly #open: () => AbortSignal;
  #started = false;
  #result: GenerationResult | undefined;

  /**
   * `open` returns what is aborted if the model is closed meanwhile, and throws if it is closed.
   * Throws a "usage" error for a prompt that is empty or too long, or parameters out of range.
   */
  constructor(
    engine: Engine,
    tokenizer: Tokenizer | undefined,
    template: ChatTemplate | undefined,
    prompt: Prompt,
    options: GenerateOptions,
    open: () => AbortSignal,
  ) {
    this.#engine = engine;
    this.#tokenizer = tokenizer;
    this.#options = options;
    this.#open = open;
    if (options.maxTokens !== undefined) requireCount("maxTokens", options.maxTokens, 0);
    this.#sampling = completeSampling(options);
    requireTokens(engine, this.#sampling.logitBias.keys());
    this.#prompt = encodePrompt(engine, tokenizer, template, prompt, options);
  }

  get promptTokens(): number {
    return this.#prompt.length;
  }

  /**
   * The pieces of text as they come; whole characters, and nothing that belongs to a stop string.
   */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void> {
    if (this.#started) throw new UserError("failed", "a text can be iterated over only once");
    const closing = this.#open();
    this.#started = true;
    yield* this.#pieces(closing);
  }

  /** The whole text, once it is complete; makes it if nobody has iterated over it. */
  async result(): Promise<GenerationResult> {
    if (!this.#started) for await (const _piece of this);
    if (this.#result === undefined) throw new UserError("failed", "the text was not completed");
    return this.#result;
  }

  async *#pieces(closing: AbortSignal): AsyncGenerator<string, void> {
    const { stop = [], ignoreEos = false, signal = closing } = this.#options;
    const started = performance.now();
    let prefilled = started;
    let cachedTokens = 0;
    const tokens: number[] = [];
    const decoder = this.#tokenizer?.decoder();
    const stops = new StopStrings(stop);
    let text = "";
    const prompt = this.#prompt;
    const ends: ReadonlySet<number> = this.#tokenizer?.endOfGeneration ?? new Set();
    await using loop = this.#engine.generate({
      prompt,
      sampler: new HostSampler(this.#sampling),
      maxTokens: this.#maxTokens(),
      endTokens: ignoreEos ? new Set() : ends,
      // Messages end with what ends an answer.
      boundaries: prompt.flatMap((token, i) => (ends.has(token) ? [i + 1] : [])),
      signal: AbortSignal.any([signal, closing]),
      onBegin: (count) => {
        cachedTokens = count;
      },
      onPrefill: () => {
        prefilled = performance.now();
      },
    });
    let finishReason: FinishReason = "stop";
    for (;;) {
      const next = await loop.next();
      if (next.done === true) {
        finishReason = next.value;
        break;
      }
      tokens.push(next.value);
      const piece = stops.push(decoder?.push(next.value) ?? "");
      text += piece;
      if (piece !== "") yield piece;
      if (stops.stopped) break;
    }
    // Tokens are made ahead of their reader: not behind a stop string.
    await loop.return("stop");
    const end = performance.now();
    const rest = stops.push(decoder?.flush() ?? "") + stops.flush();
    text += rest;
    this.#result = {
      text,
      tokens,
      finishReason,
      promptTokens: prompt.length,
      cachedTokens,
      prefillMs: prefilled - started,
      decodeMs: end - prefilled,
    };
    if (rest !== "") yield rest;
  }

  #maxTokens(): number {
    const room = this.#engine.plan.contextTokens - this.#prompt.length + 1;
    return Math.min(this.#options.maxTokens ?? room, room);
  }
}

function encodePrompt(
  engine: Engine,
  tokenizer: Tokenizer | undefined,
  template: ChatTemplate | undefined,
  prompt: Prompt,
  { raw = false, now }: GenerateOptions,
): readonly number[] {
  const tokens =
    typeof prompt === "string"
      ? encodeText(requireTokenizer(tokenizer), raw ? undefined : template, prompt, now)
      : prompt.tokens;
  requirePrompt(engine, tokens);
  return tokens;
}

/** Throws a "usage" error for ids that the model cannot be fed: none, foreign, or too many. */
export function requirePrompt(engine: Engine, tokens: readonly number[]): void {
  requireTokens(engine, tokens);
  const { contextTokens } = engine.plan;
  if (tokens.length === 0) throw emptyPrompt();
  if (tokens.length <= contextTokens) return;
  throw new UserError(
    "usage",
    `the prompt has ${tokens.length} tokens and the context ${contextTokens}`,
    "shorten the prompt or choose a longer context with -c",
  );
}

/** Throws a "usage" error for an option that is no whole number from `min`. */
export function requireCount(name: string, value: number, min: number): void {
  if (Number.isInteger(value) && value >= min) return;
  throw new UserError("usage", `${name} is ${value}`, `it must be a whole number from ${min}`);
}

function requireTokens(engine: Engine, ids: Iterable<number>): void {
  const { vocabularySize } = engine.model.config;
  for (const id of ids) {
    if (Number.isInteger(id) && id >= 0 && id < vocabularySize) continue;
    throw new UserError(
      "usage",
      `token ${id} is not in the vocabulary`,
      `ids go from 0 to ${vocabularySize - 1}`,
    );
  }
}

function encodeText(
  tokenizer: Tokenizer,
  template: ChatTemplate | undefined,
  text: string,
  now?: () => Date,
): number[] {
  if (text === "") throw emptyPrompt();
  if (template === undefined) return encodeRaw(tokenizer, text);
  const messages = [{ role: "user", content: text }];
  return encodeChat(tokenizer, template, { messages, add_generation_prompt: true }, now);
}

function emptyPrompt(): UserError {
  return new UserError("usage", "the prompt is empty", 'say something, as in --prompt "Hello"');
}

function requireTokenizer(tokenizer: Tokenizer | undefined): Tokenizer {
  if (tokenizer !== undefined) return tokenizer;
  throw new UserError("model", "the model file has no tokenizer", "feed ids with --tokens 1,2,3");
}
