/** How fast an answer was made. */
import type { GenerationResult } from "../index.ts";

/**
 * Tokens a second. What was in the cache was not computed, and the first token comes with the
 * prefill, so neither is counted; null where there is nothing to measure.
 */
export function speedsOf(result: GenerationResult) {
  const { promptTokens, cachedTokens, prefillMs, tokens, decodeMs } = result;
  return {
    prefill: prefillMs === 0 ? null : (promptTokens - cachedTokens) / (prefillMs / 1000),
    decode: tokens.length < 2 ? null : (tokens.length - 1) / (decodeMs / 1000),
  };
}

/** On one line. */
export function summaryOf(result: GenerationResult): string {
  const { prefill, decode } = speedsOf(result);
  const at = (speed: number | null) => (speed === null ? "" : ` at ${speed.toFixed(1)} tok/s`);
  const count = result.tokens.length;
  const cached = result.cachedTokens === 0 ? "" : ` (${result.cachedTokens} from before)`;
  const { draftedTokens: drafted, acceptedTokens: accepted } = result;
  const drafts = drafted === 0 ? "" : `, ${accepted} of ${drafted} guesses right`;
  return (
    `${result.promptTokens} prompt tokens${cached}${at(prefill)}, ` +
    `${count} ${count === 1 ? "token" : "tokens"}${at(decode)}${drafts}`
  );
}
