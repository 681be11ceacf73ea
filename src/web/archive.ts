/**
 * Conversations as a file, and the check of everything that comes from outside: imported files,
 * and records that an older page or a broken disk left in the browser.
 */
import type { Conversation, Message, MessageState, Role, Stats, ToolCall } from "./conversation.ts";

export interface Archive {
  readonly format: "zinc-conversations";
  readonly version: 1;
  readonly conversations: readonly Conversation[];
  readonly messages: readonly Message[];
}

export function writeArchive(
  conversations: readonly Conversation[],
  messages: readonly Message[],
): string {
  const archive: Archive = { format: "zinc-conversations", version: 1, conversations, messages };
  return `${JSON.stringify(archive, null, 2)}\n`;
}

/** Throws an Error with a sentence for the user if the text is no such file. */
export function readArchive(text: string): Archive {
  const json = parseJson(text);
  if (!isRecord(json) || json["format"] !== "zinc-conversations") {
    throw new Error("this file holds no zinc conversations");
  }
  if (json["version"] !== 1) {
    throw new Error(`version ${String(json["version"])} of the file is newer than this page`);
  }
  const conversations = listOf(json["conversations"], readConversation);
  const ids = new Set(conversations.map(({ id }) => id));
  const messages = listOf(json["messages"], readMessage);
  return {
    format: "zinc-conversations",
    version: 1,
    conversations,
    messages: messages.filter(({ conversation }) => ids.has(conversation)),
  };
}

/** Undefined if something that every conversation has is missing. */
export function readConversation(value: unknown): Conversation | undefined {
  if (!isRecord(value)) return undefined;
  const { id, title, system, head, created, updated } = value;
  if (typeof id !== "string" || typeof title !== "string") return undefined;
  return {
    id,
    title,
    system: typeof system === "string" ? system : "",
    head: typeof head === "string" ? head : null,
    created: timeOf(created),
    updated: timeOf(updated),
  };
}

const roles: readonly Role[] = ["user", "assistant", "tool"];
const states: readonly MessageState[] = ["done", "streaming", "stopped", "cut", "failed"];

/** Undefined if something that every message has is missing. */
export function readMessage(value: unknown): Message | undefined {
  if (!isRecord(value)) return undefined;
  const { id, conversation, parent, content } = value;
  const role = roles.find((known) => known === value["role"]);
  if (typeof id !== "string" || typeof conversation !== "string") return undefined;
  if (role === undefined || typeof content !== "string") return undefined;
  const state = states.find((known) => known === value["state"]) ?? "done";
  const stats = readStats(value["stats"]);
  const toolCalls = listOf(value["toolCalls"], readToolCall);
  return {
    id,
    conversation,
    parent: typeof parent === "string" ? parent : null,
    role,
    content,
    state,
    created: timeOf(value["created"]),
    ...strings(value, ["reasoning", "toolCallId", "error", "model"]),
    ...numbers(value, ["reasoningSeconds"]),
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...(stats === undefined ? {} : { stats }),
  };
}

function readToolCall(value: unknown): ToolCall | undefined {
  if (!isRecord(value)) return undefined;
  const { id, name } = value;
  if (typeof id !== "string" || typeof name !== "string") return undefined;
  return { id, name, arguments: typeof value["arguments"] === "string" ? value["arguments"] : "" };
}

function readStats(value: unknown): Stats | undefined {
  if (!isRecord(value)) return undefined;
  const { tokens, tokensPerSecond, seconds, firstTokenSeconds } = value;
  const all = [tokens, tokensPerSecond, seconds, firstTokenSeconds];
  if (!all.every((number) => typeof number === "number")) return undefined;
  const [a = 0, b = 0, c = 0, d = 0] = all;
  return {
    tokens: a,
    tokensPerSecond: b,
    seconds: c,
    firstTokenSeconds: d,
    ...numbers(value, ["promptTokens"]),
  };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function listOf<T>(value: unknown, read: (item: unknown) => T | undefined): T[] {
  if (!Array.isArray(value)) return [];
  return value.map(read).filter((item) => item !== undefined);
}

function strings<Key extends string>(
  value: Record<string, unknown>,
  keys: readonly Key[],
): Partial<Record<Key, string>> {
  const found = keys.filter((key) => typeof value[key] === "string");
  return Object.fromEntries(found.map((key) => [key, value[key]])) as Partial<Record<Key, string>>;
}

function numbers<Key extends string>(
  value: Record<string, unknown>,
  keys: readonly Key[],
): Partial<Record<Key, number>> {
  const found = keys.filter((key) => typeof value[key] === "number");
  return Object.fromEntries(found.map((key) => [key, value[key]])) as Partial<Record<Key, number>>;
}

function timeOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}
