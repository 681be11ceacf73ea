/** How fast an answer was made. */
import type { GenerationResult } from "../index.ts";

/**
 * Tokens a second. The first token comes with the prefill, so it is not counted; null where there
 * is nothing to measure.
 */
export function speedsOf({ promptTokens, prefillMs, tokens, decodeMs }: GenerationResult) {
  return {
    prefill: prefillMs === 0 ? null : promptTokens / (prefillMs / 1000),
    decode: tokens.length < 2 ? null : (tokens.length - 1) / (decodeMs / 1000),
  };
}

/** On one line. */
export function summaryOf(result: GenerationResult): string {
  const { prefill, decode } = speedsOf(result);
  const at = (speed: number | null) => (speed === null ? "" : ` at ${speed.toFixed(1)} tok/s`);
  const count = result.tokens.length;
  return (
    `${result.promptTokens} prompt tokens${at(prefill)}, ` +
    `${count} ${count === 1 ? "token" : "tokens"}${at(decode)}`
  );
}
