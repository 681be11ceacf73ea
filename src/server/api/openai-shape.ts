/** What OpenAI's endpoints have in common: ids, usage, errors, and the format of streams. */
import type { ApiError } from "../api-error.ts";
import type { Finish, LogprobEntry, TokenLogprob } from "../protocol.ts";
import { event, type StreamFormat } from "../stream.ts";

export function newId(prefix: string): string {
  return `${prefix}${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;
}

export function openaiError({ message, type, details }: ApiError) {
  const { param = null, code = null, fields } = details;
  return { error: { message, type, param, code, ...fields } };
}

export const openaiStream: StreamFormat = {
  contentType: "text/event-stream; charset=utf-8",
  ping: ": ping\n\n",
  error: (error) => event(openaiError(error)),
};

export const streamEnd = "data: [DONE]\n\n";

/** What several answers to one prompt took; the prompt counts once. */
export function usageOf(finishes: readonly Finish[], promptTokens?: number) {
  const sum = (of: (finish: Finish) => number) => finishes.reduce((n, f) => n + of(f), 0);
  const prompt = promptTokens ?? finishes[0]?.promptTokens ?? 0;
  const made = sum(({ tokens }) => tokens);
  return {
    prompt_tokens: prompt,
    completion_tokens: made,
    total_tokens: prompt + made,
    prompt_tokens_details: { cached_tokens: finishes[0]?.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: sum(({ reasoningTokens }) => reasoningTokens) },
  };
}

/** How long an answer took, as common engines say it. */
export function timingsOf({ promptTokens, tokens, queueMs, prefillMs, decodeMs }: Finish) {
  return {
    queue_ms: queueMs,
    prompt_n: promptTokens,
    prompt_ms: prefillMs,
    prompt_per_second: rate(promptTokens, prefillMs),
    predicted_n: tokens,
    predicted_ms: decodeMs,
    predicted_per_second: rate(tokens - 1, decodeMs),
  };
}

function rate(count: number, ms: number): number | null {
  return ms > 0 && count > 0 ? count / (ms / 1000) : null;
}

/** Logprobs as chats have them. */
export function chatLogprobs(entries: readonly LogprobEntry[]) {
  return {
    content: entries.map((entry) => ({
      ...scored(entry),
      top_logprobs: entry.top.map(scored),
    })),
    refusal: null,
  };
}

function scored({ text, logprob, bytes }: TokenLogprob) {
  return { token: text, logprob: finite(logprob), bytes };
}

/** JSON has no infinity. */
export function finite(logprob: number): number {
  return Number.isFinite(logprob) ? logprob : -9999;
}
