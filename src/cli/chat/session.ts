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
  #isInterrupted = false;
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

  /** Whether Ctrl+C stopped an answer since this was asked last. */
  takeInterrupt(): boolean {
    const isInterrupted = this.#isInterrupted;
    this.#isInterrupted = false;
    return isInterrupted;
  }

  /** What is shown before the next message is typed. */
  get prompt(): string {
    const [call] = this.conversation.openCalls;
    return call === undefined ? "> " : `result of ${call.name}> `;
  }

  /** Says something, and lets the model answer unless it waits for more results of its calls. */
  async say(text: string): Promise<void> {
    const { conversation } = this;
    conversation.say(text);
    if (conversation.openCalls.length > 0) return;
    try {
      await this.respond();
    } catch (error) {
      if (error instanceof UserError && error.kind === "usage") conversation.unsay();
      throw error;
    }
  }

  /**
   * Answers what was said last. An answer that Ctrl+C stopped counts as far as it went. Throws a
   * "usage" error if the conversation is too long or the template refuses it.
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
      this.#isInterrupted = result.finishReason === "cancelled";
      conversation.answer(result);
      if (result.finishReason === "length") note(this.#cutText(result));
    } finally {
      interrupt.release();
    }
  }

  get stats(): string {
    if (this.#last === undefined) return "nothing was answered yet";
    const used = this.#last.promptTokens + this.#last.tokens.length;
    return (
      `last answer: ${summaryOf(this.#last)}, which filled ${used} of the context's ` +
      `${this.#model.contextTokens}`
    );
  }

  #start(signal: AbortSignal) {
    const { generate, tools } = this.#options;
    const { messages } = this.conversation;
    // The same seed gives the same answer, and nobody asks for that again.
    const seed = generate.seed === undefined ? undefined : generate.seed + this.#repeats;
    try {
      return this.#model.chat(
        { messages, tools, thinking: this.#thinking },
        { ...generate, seed, signal },
      );
    } catch (error) {
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
