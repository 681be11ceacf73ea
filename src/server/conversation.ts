/** Conversations of OpenAI's API as the chat layer takes them. */
import type { ChatRequest } from "../chat/chat-prompt.ts";
import type { ChatMessage } from "../chat/messages.ts";
import type { Thinking } from "../chat/thinking.ts";
import { invalid } from "./api-error.ts";
import type { ApiMessage } from "./schema/openai.ts";

export interface ConversationRequest {
  readonly messages: readonly ApiMessage[];
  readonly tools?: readonly unknown[] | undefined;
  readonly thinking?: Thinking | undefined;
  readonly reasoningEffort?: string | undefined;
  /** Other variables of the template. */
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  readonly prefix?: string | undefined;
  readonly asks?: boolean | undefined;
}

/** Variables of a template that are the request's own business. */
const ownVariables = ["messages", "tools", "add_generation_prompt"];

/**
 * "developer" is another word for "system", and the system messages at the start are one: most
 * templates know one and want it there.
 */
export function chatRequest(request: ConversationRequest): ChatRequest {
  const { messages, reasoningEffort: effort, variables = {}, ...rest } = request;
  const own = ownVariables.find((name) => Object.hasOwn(variables, name));
  if (own !== undefined) {
    throw invalid(`chat_template_kwargs must not set ${own}`, `chat_template_kwargs.${own}`);
  }
  return {
    thinking: effort === "none" ? "off" : "auto",
    ...rest,
    messages: joinSystem(messages.map(toChat)),
    variables: { ...(effort !== undefined && { reasoning_effort: effort }), ...variables },
  };
}

/** Fields that are undefined are none: templates ask which there are. */
function toChat(message: ApiMessage): ChatMessage {
  const role = message.role === "developer" ? "system" : message.role;
  const reasoning =
    message.role === "assistant" ? (message.reasoning_content ?? message.reasoning) : undefined;
  const fields = { ...message, role, reasoning_content: reasoning, reasoning: undefined };
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(known) as unknown as ChatMessage;
}

function joinSystem(messages: readonly ChatMessage[]): ChatMessage[] {
  const end = messages.findIndex(({ role }) => role !== "system");
  const count = end < 0 ? messages.length : end;
  if (count < 2) return [...messages];
  const content = messages
    .slice(0, count)
    .map((message) => message.content)
    .join("\n\n");
  return [{ role: "system", content }, ...messages.slice(count)];
}
