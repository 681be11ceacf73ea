/** A conversation with a model: asks it, prints what it answers, and remembers both. */
import { Conversation } from "../../chat/conversation.ts";
import { UserError } from "../../errors.ts";
import type { GenerateOptions, GenerationResult, LanguageModel, Thinking } from "../../index.ts";
import { AnswerPrinter } from "../answer-printer.ts";
import { warnOfThinking } from "../model-options.ts";
import { note } from "../output.ts";
import { catchInterrupt } from "../signals.ts";
import { summaryOf } from "../speeds.ts";

export interface SessionOptions {
  readonly system: string | undefined;
  readonly thinking: Thinking | undefined;
  readonly tools: readonly unknown[];
  /** Sampling and the like. */
  readonly generate: GenerateOptions;
}

export class ChatSession {
  readonly conversation: Conversation;
  readonly #model: LanguageModel;
  readonly #options: SessionOptions;
  #thinking: Thinking = "auto";
  #last: GenerationResult | undefined;
  /** How often the last question was answered again. */
  #repeats = 0;

  /** Throws a "model" error if the model cannot hold a conversation. */
  constructor(model: LanguageModel, options: SessionOptions) {
    this.#model = model;
    this.#options = options;
    this.conversation = new Conversation(options.system);
    this.think(options.thinking ?? "auto", "--think");
  }

  get thinking(): Thinking {
    return this.#thinking;
  }

  think(thinking: Thinking, name = "/think"): void {
    warnOfThinking(this.#model, thinking, name);
    this.#thinking = thinking;
  }

  /** Whether Ctrl+C stopped the last answer. */
  get isInterrupted(): boolean {
    return this.#last?.finishReason === "cancelled";
  }

  /** What is shown before the next message is typed. */
  get prompt(): string {
    const [call] = this.conversation.openCalls;
    return call === undefined ? "> " : `result of ${call.name}> `;
  }

  /** Says something, and lets the model answer unless it waits for more results of its calls. */
  async say(text: string): Promise<void> {
    this.conversation.say(text);
    if (this.conversation.openCalls.length === 0) await this.respond();
  }

  /**
   * Answers what was said last, which is taken back if that is refused. An answer that Ctrl+C
   * stopped counts as far as it went.
   */
  async respond({ isAgain = false } = {}): Promise<void> {
    const { conversation } = this;
    this.#repeats = isAgain ? this.#repeats + 1 : 0;
    const interrupt = catchInterrupt();
    try {
      const generation = this.#start(interrupt.signal);
      const printer = new AnswerPrinter();
      for await (const part of generation) await printer.print(part);
      await printer.end();
      const result = await generation.result();
      this.#last = result;
      conversation.answer(result);
      if (result.finishReason === "length") note(this.#cutText(result));
    } finally {
      interrupt.release();
    }
  }

  get stats(): string {
    const { conversation } = this;
    if (this.#last === undefined) return "nothing was answered yet";
    const { promptTokens, tokens } = this.#last;
    const used = promptTokens + tokens.length;
    return (
      `last answer: ${summaryOf(this.#last)}; conversation: ${conversation.length} messages, ` +
      `${used} of ${this.#model.contextTokens} tokens`
    );
  }

  #start(signal: AbortSignal) {
    const { generate, tools } = this.#options;
    const { conversation } = this;
    // The same seed gives the same answer, and nobody asks for that again.
    const seed = generate.seed === undefined ? undefined : generate.seed + this.#repeats;
    try {
      return this.#model.chat(
        { messages: conversation.messages, tools, thinking: this.#thinking },
        { ...generate, seed, signal },
      );
    } catch (error) {
      conversation.unsay();
      if (!(error instanceof UserError) || error.kind !== "usage") throw error;
      const remedy = `${error.remedy ?? "say it otherwise"}, or begin anew with /clear`;
      throw new UserError("usage", error.message, remedy, { cause: error });
    }
  }

  #cutText({ tokens }: GenerationResult): string {
    const isLimit = tokens.length === this.#options.generate.maxTokens;
    return isLimit
      ? `cut off behind ${tokens.length} tokens, as --max-tokens says`
      : "cut off: the context is full; /clear begins anew, -c makes it longer";
  }
}
