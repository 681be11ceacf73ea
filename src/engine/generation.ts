/** The loop that makes text: prefill the prompt, then sample and append, token by token. */
import type { Engine } from "./engine.ts";
import type { Sampler } from "./sampler.ts";
import type { Sequence } from "./sequence.ts";
import { nextTurn } from "./turn.ts";

export type FinishReason = "stop" | "length" | "cancelled";

export interface GenerationOptions {
  readonly sampler: Sampler;
  /** Tokens after the prompt at most. */
  readonly maxTokens: number;
  /** Tokens that end the text; they are not part of it. */
  readonly endTokens: ReadonlySet<number>;
  readonly signal?: AbortSignal | undefined;
  /** Called when the prompt is in the cache and the first token is known. */
  readonly onPrefill?: () => void;
}

/**
 * Yields the tokens behind `prompt` as they are made and returns why it ended. The prompt is not
 * empty and fits the context. The event loop turns between steps, so that signals and writes get
 * their turn.
 */
export async function* generateTokens(
  engine: Engine,
  sequence: Sequence,
  prompt: readonly number[],
  { sampler, maxTokens, endTokens, signal, onPrefill }: GenerationOptions,
): AsyncGenerator<number, FinishReason> {
  const isCancelled = () => signal?.aborted === true;
  sampler.prime(prompt);
  if (maxTokens === 0) return "length";
  await nextTurn();
  if (isCancelled()) return "cancelled";
  let logits = await engine.appendInTurns(sequence, prompt, isCancelled);
  if (logits === undefined) return "cancelled";
  for (let count = 1; ; count++) {
    const token = sampler.sample(logits);
    if (count === 1) onPrefill?.();
    if (endTokens.has(token)) return "stop";
    yield token;
    if (count >= maxTokens || sequence.length >= engine.plan.contextTokens) return "length";
    await nextTurn();
    if (isCancelled()) return "cancelled";
    logits = engine.append(sequence, [token]);
  }
}
