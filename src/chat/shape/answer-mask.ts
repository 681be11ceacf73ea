/** The mask of a whole answer: thoughts come before what has a shape, and calls instead of it. */
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import type { AnswerStart } from "../output/answer-start.ts";
import type { OutputFormat } from "../output/format.ts";
import { orCalls } from "./call-mask.ts";
import { gated } from "./gated-mask.ts";
import type { TokenMask } from "./token-mask.ts";

export interface AnswerBeginning {
  readonly tokenizer: Tokenizer;
  /** Undefined for a text that nothing is looked for in. */
  readonly format: OutputFormat | undefined;
  readonly start: AnswerStart | undefined;
  readonly takesCalls: boolean;
}

/** Throws a `BadShape` for calls that cannot be told from the shape. */
export function answerMask(mask: TokenMask, beginning: AnswerBeginning): TokenMask {
  const { tokenizer, format, start, takesCalls } = beginning;
  const whole = takesCalls && format !== undefined ? orCalls(mask, format) : mask;
  return gated(whole, tokenizer, start, format);
}
