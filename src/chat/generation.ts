/**
 * One text in the making, as the library's users see it: pieces to iterate over, and a result in
 * the end.
 */
import type { Engine } from "../engine/engine.ts";
import type { FinishReason } from "../engine/generation.ts";
import { HostSampler } from "../engine/sampler.ts";
import { completeSampling, type Sampling } from "../engine/sampling.ts";
import { UserError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Answer } from "./answer.ts";
import type { AnswerFormat } from "./shape/answer-shape.ts";
import { MaskedSampler } from "./shape/masked-sampler.ts";
import { isDeadEnd, type TokenMask } from "./shape/token-mask.ts";
import type { TokenReader } from "./token-reader.ts";

/** Text, or token ids as they are. */
export type Prompt = string | { readonly tokens: readonly number[] };

export type GenerateOptions = { readonly [K in keyof Sampling]?: Sampling[K] | undefined } & {
  /** Tokens of the answer; as many as the context has room for by default. */
  readonly maxTokens?: number | undefined;
  /** Strings that end the answer and are not part of it. */
  readonly stop?: readonly string[] | undefined;
  /** Take the prompt as it is, without the chat template; special tokens in it count. */
  readonly raw?: boolean | undefined;
  /** What the answer must look like. One that cannot be enforced is a "usage" error. */
  readonly format?: AnswerFormat | undefined;
  /** Go on behind the tokens that usually end an answer. */
  readonly ignoreEos?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Tells the time to chat templates; the system's clock by default. */
  readonly now?: (() => Date) | undefined;
};

export interface GenerationResult extends Answer {
  readonly tokens: readonly number[];
  readonly promptTokens: number;
  /** Of the prompt, computed for an earlier text and not again. */
  readonly cachedTokens: number;
  /** Guesses of tokens that were verified, and those of them that were right. */
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
  /** "tool_calls" if the model waits for the results of functions. */
  readonly finishReason: FinishReason | "tool_calls";
  readonly prefillMs: number;
  /** From the first token to the last. */
  readonly decodeMs: number;
}

/** What a text is made of, and how its tokens are read. */
export interface GenerationInput<Piece> {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer | undefined;
  readonly prompt: readonly number[];
  readonly reader: TokenReader<Piece>;
  /** Holds the answer to its format. */
  readonly mask?: (() => Promise<TokenMask>) | undefined;
  /** Returns what is aborted if the model is closed meanwhile; throws if it is closed. */
  readonly open: () => AbortSignal;
}

export class Generation<Piece = string> implements AsyncIterable<Piece> {
  readonly #input: GenerationInput<Piece>;
  readonly #options: GenerateOptions;
  readonly #sampling: Sampling;
  #started = false;
  #result: GenerationResult | undefined;

  /** Throws a "usage" error for a prompt that is empty or too long, or parameters out of range. */
  constructor(input: GenerationInput<Piece>, options: GenerateOptions) {
    this.#input = input;
    this.#options = options;
    if (options.maxTokens !== undefined) requireCount("maxTokens", options.maxTokens, 0);
    this.#sampling = completeSampling(options);
    requireTokens(input.engine, this.#sampling.logitBias.keys());
    requirePrompt(input.engine, input.prompt);
  }

  get promptTokens(): number {
    return this.#input.prompt.length;
  }

  /** The pieces as they come; whole characters, and nothing that belongs to a stop string. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Piece, void> {
    if (this.#started) throw new UserError("failed", "a text can be iterated over only once");
    const closing = this.#input.open();
    this.#started = true;
    yield* this.#pieces(closing);
  }

  /** The whole text, once it is complete; makes it if nobody has iterated over it. */
  async result(): Promise<GenerationResult> {
    if (!this.#started) for await (const _piece of this);
    if (this.#result === undefined) throw new UserError("failed", "the text was not completed");
    return this.#result;
  }

  async *#pieces(closing: AbortSignal): AsyncGenerator<Piece, void> {
    const mask = await this.#input.mask?.();
    try {
      yield* this.#made(closing, mask);
    } finally {
      mask?.close();
    }
  }

  async *#made(closing: AbortSignal, mask: TokenMask | undefined): AsyncGenerator<Piece, void> {
    const { engine, tokenizer, prompt, reader } = this.#input;
    const { ignoreEos = false, signal = closing } = this.#options;
    const started = performance.now();
    let prefilled = started;
    let cachedTokens = 0;
    let [draftedTokens, acceptedTokens] = [0, 0];
    const tokens: number[] = [];
    const ends: ReadonlySet<number> = tokenizer?.endOfGeneration ?? new Set();
    const sampler = new HostSampler(this.#sampling);
    await using loop = engine.generate({
      prompt,
      sampler: mask === undefined ? sampler : new MaskedSampler(sampler, mask),
      // The next mask follows from the last token.
      lockstep: mask !== undefined,
      maxTokens: this.#maxTokens(),
      endTokens: ignoreEos ? new Set() : ends,
      // Messages end with what ends an answer.
      boundaries: prompt.flatMap((token, i) => (ends.has(token) ? [i + 1] : [])),
      signal: AbortSignal.any([signal, closing]),
      onBegin: (count) => {
        cachedTokens = count;
      },
      onDrafts: (drafted, accepted) => {
        draftedTokens += drafted;
        acceptedTokens += accepted;
      },
      onPrefill: () => {
        prefilled = performance.now();
      },
    });
    let finishReason: FinishReason = "stop";
    while (!reader.isStopped) {
      const next = await loop.next();
      if (next.done === true) {
        finishReason = next.value;
        break;
      }
      tokens.push(next.value);
      await mask?.accept(next.value);
      yield* reader.push(next.value);
      if (mask !== undefined && isDeadEnd(mask)) break;
    }
    // Tokens are made ahead of their reader: not behind a stop string.
    await loop.return("stop");
    const end = performance.now();
    const rest = reader.end();
    const { answer } = reader;
    const isCall = finishReason === "stop" && answer.toolCalls.length > 0;
    this.#result = {
      ...answer,
      tokens,
      finishReason: isCall ? "tool_calls" : finishReason,
      promptTokens: prompt.length,
      cachedTokens,
      draftedTokens,
      acceptedTokens,
      prefillMs: prefilled - started,
      decodeMs: end - prefilled,
    };
    yield* rest;
  }

  #maxTokens(): number {
    const { engine, prompt } = this.#input;
    const room = engine.plan.contextTokens - prompt.length + 1;
    return Math.min(this.#options.maxTokens ?? room, room);
  }
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

/** Throws a "usage" error for more dimensions than an embedding has. */
export function requireDimensions({ model }: Engine, dimensions: number): void {
  const { name, width } = model.config;
  requireCount("dimensions", dimensions, 1);
  if (dimensions <= width) return;
  throw new UserError(
    "usage",
    `${name} has embeddings of ${width} dimensions, not ${dimensions}`,
    `ask for up to ${width}`,
  );
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

function emptyPrompt(): UserError {
  return new UserError("usage", "the prompt is empty", 'say something, as in --prompt "Hello"');
}
