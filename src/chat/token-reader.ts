/** From the tokens of an answer to what is shown of it, one by one. */
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Answer } from "./answer.ts";
import { StopStrings } from "./stop-strings.ts";

/** `Piece` is what is shown while the answer comes. */
export interface TokenReader<Piece> {
  /** What became certain with this token: often nothing. */
  push(token: number): readonly Piece[];
  /** Whether the answer is over, so that no more tokens are wanted. */
  readonly isStopped: boolean;
  /** The rest, once no more tokens come. */
  end(): readonly Piece[];
  /** All that came out so far. */
  readonly answer: Answer;
}

/** The text as it is, thoughts and calls included; no text at all without a tokenizer. */
export class TextReader implements TokenReader<string> {
  readonly #decoder;
  readonly #stops: StopStrings;
  #text = "";

  /** The answer ends in front of the first of the strings in `stop`. */
  constructor(tokenizer: Tokenizer | undefined, stop: readonly string[] = []) {
    this.#decoder = tokenizer?.decoder();
    this.#stops = new StopStrings(stop);
  }

  push(token: number): string[] {
    return this.#take(this.#stops.push(this.#decoder?.push(token) ?? ""));
  }

  get isStopped(): boolean {
    return this.#stops.stopped;
  }

  end(): string[] {
    return this.#take(this.#stops.push(this.#decoder?.flush() ?? "") + this.#stops.flush());
  }

  get answer(): Answer {
    return { text: this.#text, reasoning: "", toolCalls: [] };
  }

  #take(piece: string): string[] {
    this.#text += piece;
    return piece === "" ? [] : [piece];
  }
}
