/** A conversation as clients send it, and as chat templates expect it. */
import { UserError } from "../errors.ts";

/** A message in the shape of OpenAI's API. */
export interface ChatMessage {
  readonly role: string;
  /** A text, or parts of which each is one. */
  readonly content?: unknown;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly unknown[];
  readonly [field: string]: unknown;
}

/** How a template takes the arguments of calls: most as an object, some as its JSON. */
export type ArgumentForm = "object" | "json";

/** Throws a "usage" error for content that is no text. */
export function templateMessages(
  messages: readonly ChatMessage[],
  form: ArgumentForm,
): Record<string, unknown>[] {
  return messages.map((message, index) => {
    const { tool_calls: calls, reasoning_content: reasoning } = message;
    const content = flattened(message.content, index);
    const isCall = calls !== undefined && calls.length > 0;
    return {
      ...message,
      content,
      ...(isCall && { tool_calls: calls.map((call) => withArguments(call, form)) }),
      // gpt-oss wants to know what it thought before a call, under this name.
      ...(isCall && content === "" && reasoning !== undefined && { thinking: reasoning }),
    };
  });
}

function flattened(content: unknown, index: number): string {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  const parts = Array.isArray(content) ? content : [content];
  return parts
    .map((part: unknown) => {
      if (typeof part === "string") return part;
      const text = isRecord(part) ? part["text"] : undefined;
      if (typeof text === "string") return text;
      const kind = isRecord(part) ? String(part["type"]) : typeof part;
      throw new UserError("usage", `message ${index} has content of type ${kind}`, "send text");
    })
    .join("");
}

/** What is no JSON of an object stays as it is: history may hold a call that went wrong. */
function withArguments(call: unknown, form: ArgumentForm): unknown {
  if (!isRecord(call)) return call;
  const { function: target } = call;
  if (isRecord(target)) return { ...call, function: withArguments(target, form) };
  const { arguments: given } = call;
  if (form === "json" && isRecord(given)) return { ...call, arguments: JSON.stringify(given) };
  if (form === "object" && typeof given === "string") {
    return { ...call, arguments: parsedObject(given) ?? given };
  }
  return call;
}

function parsedObject(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
