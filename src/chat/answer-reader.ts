/** From the tokens of an answer to its parts: text, thoughts and calls. */
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { AnswerCollector, type Answer, type Part } from "./answer.ts";
import type { OutputFormat } from "./output/format.ts";
import { OutputSplitter, type SplitOptions } from "./output/splitter.ts";
import { StopStrings } from "./stop-strings.ts";
import type { TokenReader } from "./token-reader.ts";

export class AnswerReader implements TokenReader<Part> {
  readonly #tokenizer: Tokenizer;
  readonly #decoder;
  readonly #stops: StopStrings;
  readonly #splitter: OutputSplitter;
  readonly #collector = new AnswerCollector();

  /**
   * The answer ends in front of the first of the strings in `stop`, wherever that stands: in the
   * text, in a thought or in a call.
   */
  constructor(
    tokenizer: Tokenizer,
    format: OutputFormat,
    options: SplitOptions = {},
    stop: readonly string[] = [],
  ) {
    this.#tokenizer = tokenizer;
    this.#decoder = tokenizer.decoder();
    this.#stops = new StopStrings(stop);
    this.#splitter = new OutputSplitter(format, options);
  }

  push(token: number): Part[] {
    if (!this.#splitter.isMark(token)) return this.#pushText(this.#decoder.push(token));
    // No character reaches over a mark, and no stop string does; it may be within one.
    const before = this.#split(this.#stops.push(this.#decoder.flush()) + this.#stops.flush());
    const spelling = this.#tokenizer.tokenText(token);
    const certain = this.#stops.push(this.#tokenizer.isControl(token) ? "" : spelling);
    if (this.#stops.stopped) return [...before, ...this.#split(certain)];
    this.#stops.flush();
    return [...before, ...this.#collect(this.#splitter.push(spelling, token))];
  }

  get isStopped(): boolean {
    return this.#stops.stopped || this.#splitter.isComplete;
  }

  /** The stop string that the answer ended at. */
  get stopString(): string | undefined {
    return this.#stops.matched;
  }

  end(): Part[] {
    const rest = this.#stops.push(this.#decoder.flush()) + this.#stops.flush();
    return [...this.#split(rest), ...this.#collect(this.#splitter.end())];
  }

  get answer(): Answer {
    return this.#collector.answer;
  }

  #pushText(text: string): Part[] {
    return this.#split(this.#stops.push(text));
  }

  #split(text: string): Part[] {
    return text === "" ? [] : this.#collect(this.#splitter.push(text));
  }

  #collect(parts: Part[]): Part[] {
    for (const part of parts) this.#collector.add(part);
    return parts;
  }
}
