/** Splits an answer into its parts while it comes. */
import type { Part } from "../answer.ts";
import { readAnswer } from "./answer-grammar.ts";
import { freshStart, type AnswerStart } from "./answer-start.ts";
import { Calls } from "./call.ts";
import type { OutputFormat } from "./format.ts";
import { AnswerInput, type Reading } from "./input.ts";
import { ToolSchemas } from "./tool-schemas.ts";
import { PartWriter } from "./writer.ts";

export interface SplitOptions {
  /** What the prompt has begun of the answer (`answerStart`); nothing by default. */
  readonly start?: AnswerStart | undefined;
  /** The tools that were offered, as the request has them: they tell the types of arguments. */
  readonly tools?: readonly unknown[] | undefined;
  /** False leaves calls in the text. */
  readonly calls?: boolean | undefined;
  /** Makes the ids of calls; random by default. */
  readonly newId?: (() => string) | undefined;
}

export class OutputSplitter {
  readonly #tokens: ReadonlyMap<number, string>;
  readonly #input: AnswerInput;
  readonly #out: PartWriter;
  readonly #reading: Reading;
  #isComplete = false;

  constructor(format: OutputFormat, options: SplitOptions = {}) {
    const { start = freshStart, tools = [], calls = true, newId = randomCallId } = options;
    this.#tokens = format.tokens;
    this.#input = new AnswerInput(new Set(format.tokens.values()), format.hidden);
    this.#out = new PartWriter(newId);
    const context = new Calls(this.#input, this.#out, new ToolSchemas(tools));
    this.#reading = readAnswer(context, format, start, calls);
  }

  /** Whether a token is a mark: then it counts by its id. */
  isMark(token: number): boolean {
    return this.#tokens.has(token);
  }

  /** Takes a piece of text, with the token that it is the text of; returns what became certain. */
  push(text: string, token?: number): Part[] {
    const mark = token === undefined ? undefined : this.#tokens.get(token);
    if (mark === undefined) this.#input.push(text);
    else this.#input.pushMark(mark);
    return this.#read();
  }

  /** The answer is over. */
  end(): Part[] {
    this.#input.end();
    const parts = this.#read();
    this.#out.end();
    return [...parts, ...this.#out.take()];
  }

  /** Whether the answer is over, whatever the model still writes: it waits for results of calls. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  #read(): Part[] {
    this.#isComplete = this.#reading.next().done === true;
    return this.#out.take();
  }
}

function randomCallId(): string {
  return `call_${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;
}
