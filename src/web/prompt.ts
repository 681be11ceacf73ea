/** The body of a request: a path of messages and the user's settings in the API's terms. */
import { parseJson } from "./archive.ts";
import type { Message } from "./conversation.ts";
import type { Settings } from "./settings.ts";

interface ApiMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly content: string;
  readonly tool_calls?: readonly unknown[];
  readonly tool_call_id?: string;
}

export function requestBody(
  path: readonly Message[],
  system: string,
  { model, sampling, thinking, tools }: Settings,
): Record<string, unknown> {
  const listed = toolsOf(tools);
  return {
    ...(model === "" ? {} : { model }),
    messages: apiMessages(path, system),
    stream: true,
    stream_options: { include_usage: true },
    ...sampling,
    ...(listed.length > 0 ? { tools: listed } : {}),
    ...(thinking === "auto"
      ? {}
      : { chat_template_kwargs: { enable_thinking: thinking === "on" } }),
  };
}

/**
 * Answers of which nothing came are left out, and what the user said around them becomes one turn,
 * for many templates refuse two in a row.
 */
export function apiMessages(path: readonly Message[], system: string): ApiMessage[] {
  const messages: ApiMessage[] = [];
  if (system.trim() !== "") messages.push({ role: "system", content: system });
  for (const message of path) {
    const { role, content, toolCalls = [], toolCallId } = message;
    const previous = messages.at(-1);
    if (role === "user" && previous?.role === "user") {
      messages[messages.length - 1] = { role, content: `${previous.content}\n\n${content}` };
    } else if (role === "tool") {
      messages.push({ role, content, tool_call_id: toolCallId ?? "" });
    } else if (role === "user" || content !== "" || toolCalls.length > 0) {
      messages.push({
        role,
        content,
        ...(toolCalls.length > 0 ? { tool_calls: toolCalls.map(apiToolCall) } : {}),
      });
    }
  }
  return messages;
}

function apiToolCall(call: { id: string; name: string; arguments: string }): unknown {
  return {
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
  };
}

/** The user's tools; none while the text is no list. */
function toolsOf(text: string): readonly unknown[] {
  const list = parseJson(text);
  return Array.isArray(list) ? list : [];
}

/** What is wrong with the text of tools, as a sentence; undefined if nothing is. */
export function toolsProblem(text: string): string | undefined {
  if (text.trim() === "") return undefined;
  const list = parseJson(text);
  if (list === undefined) return "This is not JSON.";
  return Array.isArray(list) ? undefined : "Tools are a JSON list.";
}
