/** Messages as clients send them, as chat templates take them. */
import type { TemplateInput } from "../chat/template-input.ts";
import { invalid } from "./api-error.ts";
import type { ChatMessage } from "./schema/openai.ts";

export interface ConversationRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly unknown[] | undefined;
  readonly reasoningEffort?: string | undefined;
  /** Other variables of the template. */
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  /** False if the answer is not to begin; true by default. */
  readonly begins?: boolean | undefined;
}

const ownVariables = ["messages", "tools", "add_generation_prompt"];

/**
 * What the template is given. "developer" is another word for "system", and the system messages at
 * the start are one: most templates know one and want it there.
 */
export function templateInput(request: ConversationRequest): TemplateInput {
  const { messages, tools = [], reasoningEffort: effort, variables = {} } = request;
  const own = ownVariables.find((name) => Object.hasOwn(variables, name));
  if (own !== undefined) {
    throw invalid(`chat_template_kwargs must not set ${own}`, `chat_template_kwargs.${own}`);
  }
  return {
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(effort === "none" && { enable_thinking: false }),
    ...variables,
    messages: joinSystem(messages.map(toTemplate)),
    ...(tools.length > 0 && { tools }),
    add_generation_prompt: request.begins !== false,
  };
}

interface TemplateMessage {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: unknown;
}

function toTemplate(message: ChatMessage): TemplateMessage {
  const { role, content, name } = message;
  const common = { content: content ?? "", ...(name !== undefined && { name }) };
  if (role === "developer") return { role: "system", ...common };
  if (role === "tool") return { role, ...common, tool_call_id: message.tool_call_id };
  if (role !== "assistant") return { role, ...common };
  const { tool_calls: calls = [], reasoning_content: reasoning = message.reasoning } = message;
  return {
    role,
    ...common,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls.map(toTemplateCall) }),
  };
}

function toTemplateCall(call: NonNullable<(ChatMessage & { role: "assistant" })["tool_calls"]>[0]) {
  const { name, arguments: given } = call.function;
  return { id: call.id, type: "function", function: { name, arguments: readArguments(given) } };
}

/** An object if they are one; what a model has broken goes back to it as it is. */
function readArguments(given: unknown): unknown {
  if (given === undefined || given === null || given === "") return {};
  if (typeof given !== "string") return given;
  try {
    const value: unknown = JSON.parse(given);
    return typeof value === "object" && value !== null ? value : given;
  } catch {
    return given;
  }
}

function joinSystem(messages: readonly TemplateMessage[]): TemplateMessage[] {
  const end = messages.findIndex(({ role }) => role !== "system");
  const count = end < 0 ? messages.length : end;
  if (count < 2) return [...messages];
  const content = messages
    .slice(0, count)
    .map((message) => message.content)
    .join("\n\n");
  return [{ role: "system", content }, ...messages.slice(count)];
}
