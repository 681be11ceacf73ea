/** One text in the making, on the engine's side: from a request to pieces of an answer. */
import { AnswerReader } from "../chat/answer-reader.ts";
import type { Part } from "../chat/answer.ts";
import { chatPrompt, type ChatFormat, type ChatRequest } from "../chat/chat-prompt.ts";
import type { AnswerStart } from "../chat/output/answer-start.ts";
import { formatOf } from "../chat/output/format.ts";
import { encodeRaw } from "../chat/prompt.ts";
import { answerMask } from "../chat/shape/answer-mask.ts";
import { callClosing, callOpening, canForceCalls } from "../chat/shape/forced-call.ts";
import type { TokenMask } from "../chat/shape/token-mask.ts";
import type { FinishReason } from "../engine/generation.ts";
import { completeSampling, type Sampling } from "../engine/sampling.ts";
import { UserError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { Refusal } from "./problem.ts";
import type { Finish, LogprobEntry, Piece, TokenLogprob, Work } from "./protocol.ts";
import type { MadeToken, ScoredToken, TokenSource } from "./token-source.ts";

/** Of a text that nothing is looked for in. */
const plainFormat = formatOf("");

/** A model as requests need it. */
export interface ServedModel {
  readonly tokenizer: Tokenizer;
  /** Undefined for a model without a chat template. */
  readonly chat: ChatFormat | undefined;
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
  readonly #reader: AnswerReader;
  readonly #mask: TokenMask | undefined;
  /** Tokens that are part of the answer and not made: what opens and closes a call. */
  readonly #frame: { readonly before: readonly number[]; readonly behind: readonly number[] };
  /** Of tokens whose text is still held back. */
  #logprobs: LogprobEntry[] = [];
  #tokenCount = 0;
  #reasoningCount = 0;
  #isReasoning: boolean;

  /** Throws a `Refusal` or a "usage" error for what cannot be answered. */
  constructor(model: ServedModel, work: Work, mask: TokenMask | undefined) {
    this.#model = model;
    this.#work = work;
    this.#sampling = completeSampling(work.sampling);
    requireTokens(model, this.#sampling.logitBias.keys(), "logit_bias");
    const encoded = encodePrompt(model, work);
    const { start } = encoded;
    const isCall = work.shape?.type === "call";
    this.#frame = isCall ? callFrame(model, start) : noFrame;
    this.#mask = mask === undefined || isCall ? mask : wholeMask(mask, model, work, start);
    const tokens = [...encoded.tokens, ...this.#frame.before];
    requirePrompt(model, tokens, work.prompt.type === "chat" ? "messages" : "prompt");
    this.#prompt = tokens;
    this.promptTokens = tokens.length;
    this.#isReasoning = start?.thought !== undefined;
    const { tokenizer, chat } = model;
    const { prompt, stop } = work;
    this.#reader =
      prompt.type === "chat" && chat !== undefined
        ? new AnswerReader(
            tokenizer,
            chat.output,
            { start, tools: prompt.request.tools, calls: prompt.calls },
            stop,
          )
        : new AnswerReader(tokenizer, plainFormat, {}, stop);
  }

  async *run(signal: AbortSignal): AsyncGenerator<Piece, Finish> {
    const asked = performance.now();
    let [begun, first] = [asked, asked];
    let cachedTokens = 0;
    const loop = this.#tokens(signal, (count) => {
      begun = first = performance.now();
      cachedTokens = count;
    });
    let reason: FinishReason = "stop";
    const opening = this.#frame.before.flatMap((token) => this.#reader.push(token));
    if (opening.length > 0) yield this.#piece(opening);
    for (;;) {
      const next = await loop.next();
      if (this.#tokenCount === 0) first = performance.now();
      if (next.done === true) {
        reason = next.value;
        break;
      }
      const parts = this.#read(next.value);
      if (parts.length > 0) yield this.#piece(parts);
      if (this.#reader.isStopped) break;
    }
    await loop.return("stop");
    const end = performance.now();
    const closing = reason === "stop" ? this.#frame.behind : [];
    const closed = closing.flatMap((token) => this.#reader.push(token));
    const parts = [...closed, ...this.#reader.end()];
    // Tokens of a stop string are no part of the answer.
    if (this.#reader.stopString !== undefined) this.#logprobs = [];
    if (parts.length > 0 || this.#logprobs.length > 0) yield this.#piece(parts);
    return {
      reason,
      stopString: this.#reader.stopString,
      promptTokens: this.promptTokens,
      cachedTokens,
      tokens: this.#tokenCount,
      reasoningTokens: this.#reasoningCount,
      queueMs: begun - asked,
      prefillMs: first - begun,
      decodeMs: end - first,
    };
  }

  #tokens(signal: AbortSignal, onBegin: (cachedTokens: number) => void) {
    const { tokenizer, tokens, contextTokens } = this.#model;
    const { maxTokens, ignoreEos, client, logprobs } = this.#work;
    const prompt = this.#prompt;
    const room = contextTokens - prompt.length + 1;
    const ends = tokenizer.endOfGeneration;
    return tokens.generate({
      prompt,
      maxTokens: Math.min(maxTokens ?? room, room),
      sampling: this.#sampling,
      endTokens: ignoreEos ? new Set() : ends,
      // Messages end with what ends an answer.
      boundaries: prompt.flatMap((token, i) => (ends.has(token) ? [i + 1] : [])),
      client,
      logprobs,
      mask: this.#mask,
      signal,
      onBegin,
    });
  }

  #read(made: MadeToken): readonly Part[] {
    this.#tokenCount++;
    const parts = this.#reader.push(made.token);
    if (this.#work.logprobs !== undefined) {
      const top = made.top.map((scored) => this.#describe(scored));
      this.#logprobs.push({ ...this.#describe(made), top });
    }
    const last = parts.findLast(({ type }) => type !== "call_end" && type !== "call_broken");
    if (last !== undefined) this.#isReasoning = last.type === "reasoning";
    if (this.#isReasoning) this.#reasoningCount++;
    return parts;
  }

  #piece(parts: readonly Part[]): Piece {
    const logprobs = this.#logprobs;
    this.#logprobs = [];
    return { parts, logprobs };
  }

  #describe({ token, logprob }: ScoredToken): TokenLogprob {
    const bytes = [...this.#model.tokenizer.tokenBytes(token)];
    return { id: token, text: spellBytes(bytes), bytes, logprob };
  }
}

function wholeMask(
  mask: TokenMask,
  { tokenizer, chat }: ServedModel,
  { prompt }: Work,
  start: AnswerStart | undefined,
): TokenMask {
  const takesCalls = prompt.type === "chat" && prompt.calls;
  return answerMask(mask, { tokenizer, format: chat?.output, start, takesCalls });
}

const noFrame = { before: [], behind: [] };

/** Throws a `Refusal` for a model of which it is not known how it writes calls. */
function callFrame({ tokenizer, chat }: ServedModel, start: AnswerStart | undefined) {
  if (chat === undefined || !canForceCalls(chat.template)) {
    throw new Refusal({
      kind: "usage",
      message:
        "tool_choice: a call of this model cannot be forced; only auto and none are possible",
      param: "tool_choice",
      code: "unsupported_tool_choice",
    });
  }
  const encode = (text: string) => tokenizer.encode(text, { special: true });
  // A thought that the prompt has begun is over.
  const close = start?.thought === undefined ? "" : `${start.thought.close}\n\n`;
  return { before: encode(close + callOpening), behind: encode(callClosing) };
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
  if (prompt.type === "tokens") return prompt;
  if (prompt.type === "text") return { tokens: encodeRaw(model.tokenizer, prompt.text) };
  const { chat } = model;
  return refusing(prompt.request, (request) => chatPrompt(requireChat(chat), request));
}

/** Throws a "usage" error for a model that has no chat template. */
export function requireChat(chat: ChatFormat | undefined): ChatFormat {
  if (chat !== undefined) return chat;
  throw new UserError("usage", "the model has no chat template", "use /v1/completions");
}

/** Longer conversations are not searched for the message that is refused. */
const searchedMessagesMax = 64;

/** Does something with a conversation; a refusal names the message that it is about. */
export function refusing<T>(request: ChatRequest, use: (request: ChatRequest) => T): T {
  try {
    return use(request);
  } catch (error) {
    if (!(error instanceof UserError) || error.kind !== "usage") throw error;
    const { message } = error;
    const { messages } = request;
    const isRefused = (_message: unknown, i: number) => {
      try {
        use({ ...request, messages: messages.slice(0, i + 1) });
        return false;
      } catch {
        return true;
      }
    };
    const index = messages.length > searchedMessagesMax ? -1 : messages.findIndex(isRefused);
    const param = index < 0 ? "messages" : `messages[${index}]`;
    throw new Refusal({ kind: "usage", message, param, code: "template_error" });
  }
}

/** Throws a `Refusal` for tokens that are none, foreign or too many. */
export function requirePrompt(model: ServedModel, tokens: readonly number[], param: string): void {
  requireTokens(model, tokens, param);
  const { contextTokens } = model;
  if (tokens.length === 0) {
    throw new Refusal({ kind: "usage", message: "the prompt is empty", param });
  }
  if (tokens.length <= contextTokens) return;
  throw new Refusal({
    kind: "usage",
    message:
      `the prompt has ${tokens.length} tokens and the context ${contextTokens}; ` +
      "shorten it, or start the server with a longer context (-c)",
    param,
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
