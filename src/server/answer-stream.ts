/** One text in the making, on the engine's side: from a request to pieces of an answer. */
import { encodeConversation, RefusedConversation } from "../chat/conversation.ts";
import type { Part } from "../chat/answer.ts";
import type { AnswerStart } from "../chat/output/answer-start.ts";
import { plainFormat, type OutputFormat } from "../chat/output/format.ts";
import { OutputSplitter } from "../chat/output/splitter.ts";
import { encodeRaw } from "../chat/prompt.ts";
import { StopStrings } from "../chat/stop-strings.ts";
import type { ChatTemplate } from "../chat/template.ts";
import type { FinishReason } from "../engine/generation.ts";
import { completeSampling, type Sampling } from "../engine/sampling.ts";
import { UserError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { Refusal } from "./problem.ts";
import type { Finish, LogprobEntry, Piece, TokenLogprob, Work } from "./protocol.ts";
import type { MadeToken, ScoredToken, TokenMask, TokenSource } from "./token-source.ts";

/** A model as requests need it. */
export interface ServedModel {
  readonly tokenizer: Tokenizer;
  readonly template: ChatTemplate | undefined;
  /** How its answers are marked. */
  readonly format: OutputFormat;
  readonly tokens: TokenSource;
  readonly contextTokens: number;
  readonly vocabularySize: number;
}

export class AnswerStream {
  readonly promptTokens: number;
  readonly #model: ServedModel;
  readonly #work: Work;
  readonly #prompt: readonly number[];
  readonly #sampling: Sampling;
  readonly #splitter: OutputSplitter;
  readonly #stops: StopStrings;
  readonly #mask: TokenMask | undefined;
  /** Of tokens whose text is still held back, with where it begins. */
  #logprobs: { readonly entry: LogprobEntry; readonly at: number }[] = [];
  #madeLength = 0;
  #passedLength = 0;
  #tokenCount = 0;
  #reasoningCount = 0;
  #isReasoning: boolean;

  /** Throws a `Refusal` or a "usage" error for what cannot be answered. */
  constructor(model: ServedModel, work: Work, mask: TokenMask | undefined) {
    this.#model = model;
    this.#work = work;
    this.#mask = mask;
    this.#sampling = completeSampling(work.sampling);
    requireTokens(model, this.#sampling.logitBias.keys(), "logit_bias");
    const { tokens, start } = encodePrompt(model, work);
    requirePrompt(model, tokens);
    this.#prompt = tokens;
    this.promptTokens = tokens.length;
    this.#stops = new StopStrings(work.stop);
    this.#isReasoning = start?.thought !== undefined;
    const { prompt } = work;
    this.#splitter =
      prompt.type === "chat"
        ? new OutputSplitter(model.format, { start, tools: prompt.tools, calls: prompt.calls })
        : new OutputSplitter(plainFormat);
  }

  async *run(signal: AbortSignal): AsyncGenerator<Piece, Finish> {
    const { tokenizer, tokens, contextTokens } = this.#model;
    const asked = performance.now();
    let [begun, first] = [asked, asked];
    const decoder = tokenizer.decoder();
    const room = contextTokens - this.#prompt.length + 1;
    const loop = tokens.generate({
      prompt: this.#prompt,
      maxTokens: Math.min(this.#work.maxTokens ?? room, room),
      sampling: this.#sampling,
      endTokens: this.#work.ignoreEos ? new Set() : tokenizer.endOfGeneration,
      client: this.#work.client,
      logprobs: this.#work.logprobs,
      mask: this.#mask,
      signal,
      onBegin: () => {
        begun = first = performance.now();
      },
    });
    let reason: FinishReason = "stop";
    for (;;) {
      const next = await loop.next();
      if (this.#tokenCount === 0) first = performance.now();
      if (next.done === true) {
        reason = next.value;
        break;
      }
      this.#count(next.value);
      const parts = this.#push(next.value.token, decoder.push(next.value.token));
      this.#noteKind(parts);
      if (parts.length > 0) yield this.#piece(parts);
      if (this.#stops.stopped) break;
    }
    await loop.return("stop");
    const end = performance.now();
    const rest = this.#stops.push(decoder.flush()) + this.#stops.flush();
    const parts = [...this.#splitter.push(rest), ...this.#splitter.end()];
    if (parts.length > 0 || this.#logprobs.length > 0) yield this.#piece(parts);
    return {
      reason,
      stopString: this.#stops.matched,
      promptTokens: this.promptTokens,
      cachedTokens: 0,
      tokens: this.#tokenCount,
      reasoningTokens: this.#reasoningCount,
      queueMs: begun - asked,
      prefillMs: first - begun,
      decodeMs: end - first,
    };
  }

  #count(made: MadeToken): void {
    this.#tokenCount++;
    if (this.#work.logprobs === undefined) return;
    const top = made.top.map((scored) => this.#describe(scored));
    const entry = { ...this.#describe(made), top };
    this.#logprobs.push({ entry, at: this.#madeLength });
  }

  /** Whether the last token was one of a thought. */
  #noteKind(parts: readonly Part[]): void {
    const last = parts.findLast(({ type }) => type !== "call_end" && type !== "call_broken");
    if (last !== undefined) this.#isReasoning = last.type === "reasoning";
    if (this.#isReasoning) this.#reasoningCount++;
  }

  /** Marks that are one token count by their ids; no stop string goes across one. */
  #push(token: number, text: string): Part[] {
    if (!this.#splitter.isMark(token)) return this.#splitter.push(this.#pass(text));
    const parts = this.#splitter.push(this.#stops.flush());
    const spelling = this.#model.tokenizer.tokenText(token);
    this.#pass(spelling);
    if (this.#stops.stopped) return parts;
    this.#stops.flush();
    return [...parts, ...this.#splitter.push(spelling, token)];
  }

  /** The text that is certainly no part of a stop string. */
  #pass(text: string): string {
    const certain = this.#stops.push(text);
    this.#madeLength += text.length;
    this.#passedLength += certain.length;
    return certain;
  }

  #piece(parts: readonly Part[]): Piece {
    // Tokens of a stop string are no part of the answer.
    const counted = this.#logprobs.filter(
      ({ at }) => !this.#stops.stopped || at < this.#passedLength,
    );
    this.#logprobs = [];
    return { parts, logprobs: counted.map(({ entry }) => entry) };
  }

  #describe({ token, logprob }: ScoredToken): TokenLogprob {
    const { tokenizer } = this.#model;
    const bytes = [...tokenizer.tokenBytes(token)];
    return { id: token, text: spellBytes(bytes), bytes, logprob };
  }
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of a token; "bytes:\\xf0" for a part of a character. */
function spellBytes(bytes: readonly number[]): string {
  try {
    return strictUtf8.decode(Uint8Array.from(bytes));
  } catch {
    return `bytes:${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}`;
  }
}

function encodePrompt(
  model: ServedModel,
  { prompt }: Work,
): { tokens: readonly number[]; start?: AnswerStart } {
  const { tokenizer, template, format } = model;
  if (prompt.type === "tokens") return prompt;
  if (prompt.type === "text") return { tokens: encodeRaw(tokenizer, prompt.text) };
  if (template === undefined) {
    throw new UserError("usage", "the model has no chat template", "use /v1/completions");
  }
  try {
    return encodeConversation({ tokenizer, template, format }, prompt.input, prompt.prefix);
  } catch (error) {
    throw refusedByTemplate(error);
  }
}

/** What a template says against a conversation, with the message it is about. */
export function refusedByTemplate(error: unknown): unknown {
  if (!(error instanceof RefusedConversation)) return error;
  return new Refusal({
    kind: "usage",
    message: `the chat template refused this: ${error.message}`,
    param: error.index === undefined ? "messages" : `messages[${error.index}]`,
    code: "template_error",
  });
}

function requirePrompt(model: ServedModel, tokens: readonly number[]): void {
  requireTokens(model, tokens, "prompt");
  const { contextTokens } = model;
  if (tokens.length === 0) {
    throw new Refusal({ kind: "usage", message: "the prompt is empty", param: "prompt" });
  }
  if (tokens.length <= contextTokens) return;
  throw new Refusal({
    kind: "usage",
    message:
      `the prompt has ${tokens.length} tokens and the context ${contextTokens}; ` +
      "shorten it, or start the server with a longer context (-c)",
    param: "messages",
    code: "context_length_exceeded",
    details: { n_prompt_tokens: tokens.length, n_ctx: contextTokens },
  });
}

function requireTokens({ vocabularySize }: ServedModel, ids: Iterable<number>, param: string) {
  for (const id of ids) {
    if (Number.isInteger(id) && id >= 0 && id < vocabularySize) continue;
    const message = `token ${id} is not in the vocabulary; ids go from 0 to ${vocabularySize - 1}`;
    throw new Refusal({ kind: "usage", message, param });
  }
}
