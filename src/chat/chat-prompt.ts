/** A conversation as the token ids that the model is fed, and how it makes the answer begin. */
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Segment } from "./jinja/text.ts";
import { templateMessages, type ArgumentForm, type ChatMessage } from "./messages.ts";
import { answerStart, type AnswerStart } from "./output/answer-start.ts";
import type { OutputFormat } from "./output/format.ts";
import { encodeSegments, templateFailure } from "./prompt.ts";
import { TemplateError } from "./template-error.ts";
import type { ChatTemplate } from "./template.ts";
import { thinkingVariables, type Thinking } from "./thinking.ts";

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  /** Functions that the model may call, in the shape of OpenAI's API. */
  readonly tools?: readonly unknown[] | undefined;
  readonly thinking?: Thinking | undefined;
  /** Further variables of the template. */
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  /** What the answer begins with, so that the model goes on from there. */
  readonly prefix?: string | undefined;
  /** False leaves out what makes the model answer. */
  readonly asks?: boolean | undefined;
}

export interface ChatPrompt {
  readonly tokens: readonly number[];
  readonly start: AnswerStart;
}

/** What a conversation needs of a model. */
export interface ChatFormat {
  readonly tokenizer: Tokenizer;
  readonly template: ChatTemplate;
  readonly output: OutputFormat;
}

/** Throws a "usage" error with the template's own words if it refuses the conversation. */
export function chatPrompt(
  { tokenizer, template, output }: ChatFormat,
  request: ChatRequest,
  now?: () => Date,
): ChatPrompt {
  const segments = renderChat(template, request, now);
  return { tokens: encodeSegments(tokenizer, segments), start: answerStart(output, segments) };
}

/** The text of a prompt, cut where its origin changes. Throws as `chatPrompt` does. */
export function renderChat(
  template: ChatTemplate,
  request: ChatRequest,
  now?: () => Date,
): Segment[] {
  const { prefix = "" } = request;
  const segments = render(template, request, now);
  return prefix === "" ? segments : [...segments, { text: prefix, special: false }];
}

function render(template: ChatTemplate, request: ChatRequest, now?: () => Date): Segment[] {
  const { messages, tools, thinking = "auto", variables, asks = true } = request;
  const attempt = (form: ArgumentForm) =>
    template.renderSegments(
      {
        ...variables,
        ...thinkingVariables(thinking),
        messages: templateMessages(messages, form),
        ...(tools !== undefined && tools.length > 0 && { tools }),
        add_generation_prompt: asks,
      },
      now === undefined ? {} : { now },
    );
  try {
    try {
      return attempt("object");
    } catch (error) {
      const hasCalls = messages.some(({ tool_calls: calls = [] }) => calls.length > 0);
      if (!(error instanceof TemplateError) || error.kind !== "runtime" || !hasCalls) throw error;
      return attempt("json");
    }
  } catch (error) {
    throw templateFailure(error);
  }
}
