/**
 * A mask that waits: an answer may begin with thoughts, or with the header of a message, and only
 * what stands behind must have a shape.
 */
import type { AnswerStart } from "../output/answer-start.ts";
import type { OutputFormat } from "../output/format.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import type { TokenMask } from "./token-mask.ts";

/** Where the message of gpt-oss that is the answer begins. */
const finalMessage = /<\|channel\|>final[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>$/;

/** No opening is longer. */
const tailLength = 100;

/** The mask itself, if the answer begins at once. */
export function gated(
  mask: TokenMask,
  tokenizer: Tokenizer,
  start: AnswerStart | undefined,
  format: OutputFormat | undefined,
): TokenMask {
  const close = start?.thought?.close;
  if (format?.isHarmony === true) {
    return new GatedMask(mask, tokenizer, (tail) => finalMessage.test(tail));
  }
  return close === undefined
    ? mask
    : new GatedMask(mask, tokenizer, (tail) => tail.endsWith(close));
}

class GatedMask implements TokenMask {
  readonly #mask: TokenMask;
  readonly #tokenizer: Tokenizer;
  readonly #opens: (tail: string) => boolean;
  readonly #all: Int32Array;
  /** The end of what came so far. */
  #tail = "";
  #isOpen = false;

  constructor(mask: TokenMask, tokenizer: Tokenizer, opens: (tail: string) => boolean) {
    this.#mask = mask;
    this.#tokenizer = tokenizer;
    this.#opens = opens;
    this.#all = new Int32Array(mask.allowed.length).fill(-1);
  }

  get allowed(): Int32Array {
    return this.#isOpen ? this.#mask.allowed : this.#all;
  }

  async accept(token: number): Promise<void> {
    if (this.#isOpen) return this.#mask.accept(token);
    const text = this.#tokenizer.decoder({ special: true }).push(token);
    this.#tail = (this.#tail + text).slice(-tailLength);
    this.#isOpen = this.#opens(this.#tail);
  }

  close(): void {
    this.#mask.close();
  }
}
