/** From the messages of a conversation to token ids, and to how the answer will begin. */
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { answerStart, type AnswerStart } from "./output/answer-start.ts";
import type { OutputFormat } from "./output/format.ts";
import { withBos } from "./prompt.ts";
import { TemplateError } from "./template-error.ts";
import type { TemplateInput } from "./template-input.ts";
import type { ChatTemplate } from "./template.ts";

/** What a conversation is rendered with. */
export interface ConversationModel {
  readonly tokenizer: Tokenizer;
  readonly template: ChatTemplate;
  readonly format: OutputFormat;
}

export interface EncodedConversation {
  readonly tokens: readonly number[];
  readonly start: AnswerStart;
}

/** The template refused a conversation. */
export class RefusedConversation extends Error {
  override readonly name = "RefusedConversation";
  /** The message that it refused, if one of them can be told. */
  readonly index: number | undefined;

  constructor(cause: TemplateError, index: number | undefined) {
    super(cause.message, { cause });
    this.index = index;
  }
}

/**
 * The ids of a conversation, and behind them those of `prefix`, with which the answer begins. Throws
 * `RefusedConversation`.
 */
export function encodeConversation(
  { tokenizer, template, format }: ConversationModel,
  input: TemplateInput,
  prefix = "",
): EncodedConversation {
  const rendered = renderConversation(template, input);
  const segments = [...rendered, ...(prefix === "" ? [] : [{ text: prefix, special: false }])];
  return {
    tokens: withBos(tokenizer, tokenizer.encode(segments)),
    start: answerStart(format, segments),
  };
}

/** The text of a conversation as `encodeConversation` reads it, cut where its origin changes. */
export function renderConversation(template: ChatTemplate, input: TemplateInput) {
  try {
    return template.renderSegments(input);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    // Some templates join the arguments of earlier calls as text, others look into them.
    const spelled = withSpelledArguments(input);
    try {
      if (spelled !== input) return template.renderSegments(spelled);
    } catch {
      // What it said at first is about the conversation as it came.
    }
    throw new RefusedConversation(error, refusedIndex(template, input));
  }
}

/** Longer conversations are not searched for the message that the template refuses. */
const searchedMessagesMax = 64;

/** The last message of the shortest beginning that the template refuses. */
function refusedIndex(template: ChatTemplate, input: TemplateInput): number | undefined {
  const { messages = [] } = input;
  if (messages.length > searchedMessagesMax) return undefined;
  for (let count = 1; count <= messages.length; count++) {
    try {
      template.render({ ...input, messages: messages.slice(0, count) });
    } catch {
      return count - 1;
    }
  }
  return undefined;
}

interface CallOfHistory {
  readonly function?: { readonly arguments?: unknown };
}

function withSpelledArguments(input: TemplateInput): TemplateInput {
  const { messages = [] } = input;
  const hasCalls = (message: unknown): message is { tool_calls: CallOfHistory[] } =>
    typeof message === "object" && message !== null && "tool_calls" in message;
  if (!messages.some(hasCalls)) return input;
  const spelled = messages.map((message) =>
    hasCalls(message)
      ? { ...message, tool_calls: message.tool_calls.map(withSpelledArgument) }
      : message,
  );
  return { ...input, messages: spelled };
}

function withSpelledArgument(call: CallOfHistory): CallOfHistory {
  const { arguments: value } = call.function ?? {};
  if (value === undefined || typeof value === "string") return call;
  return { ...call, function: { ...call.function, arguments: JSON.stringify(value) } };
}
