/**
 * What a conversation is: a tree of messages, of which one path, from the root to the head, is
 * shown. Editing and regenerating add a sibling; nothing that was written is lost.
 */
export type Role = "user" | "assistant" | "tool";

/** "stopped" by the user, "cut" at a token limit, "failed" with an error; what came is kept. */
export type MessageState = "done" | "streaming" | "stopped" | "cut" | "failed";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON as the model wrote it, which need not be well formed. */
  readonly arguments: string;
}

export interface Stats {
  readonly tokens: number;
  readonly tokensPerSecond: number;
  readonly seconds: number;
  readonly firstTokenSeconds: number;
  readonly promptTokens?: number;
}

export interface Message {
  readonly id: string;
  readonly conversation: string;
  /** The message before it; null for the first. */
  readonly parent: string | null;
  readonly role: Role;
  readonly content: string;
  readonly reasoning?: string;
  readonly reasoningSeconds?: number;
  readonly toolCalls?: readonly ToolCall[];
  /** Of a tool's result: the call that it answers. */
  readonly toolCallId?: string;
  readonly state: MessageState;
  /** What the server said, to the letter. */
  readonly error?: string;
  readonly model?: string;
  readonly stats?: Stats;
  /** Milliseconds since 1970. */
  readonly created: number;
}

export interface Conversation {
  readonly id: string;
  readonly title: string;
  readonly system: string;
  /** The last message of the path that is shown; null while it is empty. */
  readonly head: string | null;
  readonly created: number;
  readonly updated: number;
}

export type Messages = ReadonlyMap<string, Message>;

/** 128 random bits; `randomUUID` is missing where the page comes without TLS from elsewhere. */
export function newId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

/** From the first message to `head`. */
export function pathTo(messages: Messages, head: string | null): Message[] {
  const path: Message[] = [];
  const seen = new Set<string>();
  let next = head === null ? undefined : messages.get(head);
  while (next !== undefined && !seen.has(next.id)) {
    seen.add(next.id);
    path.push(next);
    next = next.parent === null ? undefined : messages.get(next.parent);
  }
  return path.reverse();
}

/** Messages by the one before them, each group in order of time. */
export function childrenOf(messages: Messages): Map<string | null, Message[]> {
  const children = new Map<string | null, Message[]>();
  for (const message of messages.values()) {
    const group = children.get(message.parent);
    if (group === undefined) children.set(message.parent, [message]);
    else group.push(message);
  }
  for (const group of children.values()) group.sort((a, b) => a.created - b.created);
  return children;
}

/** Where a branch ends if one always takes the newest turn. */
export function newestLeaf(messages: Messages, from: string): string {
  const children = childrenOf(messages);
  const seen = new Set<string>();
  let leaf = from;
  while (!seen.has(leaf)) {
    seen.add(leaf);
    leaf = children.get(leaf)?.at(-1)?.id ?? leaf;
  }
  return leaf;
}

/** The first words of what the user said. */
export function titleOf(text: string): string {
  const line = text.trim().split("\n", 1)[0]?.trim() ?? "";
  if (line === "") return "New conversation";
  if (line.length <= 60) return line;
  const cut = line.slice(0, 58);
  const space = cut.lastIndexOf(" ");
  return `${space > 30 ? cut.slice(0, space) : cut}…`;
}

/** By age, the newest first; groups in which nothing is are left out. */
export function groupsOf(
  conversations: readonly Conversation[],
  now: Date,
): [string, Conversation[]][] {
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime();
  const day = 24 * 60 * 60 * 1000;
  const ages: readonly [string, number][] = [
    ["Today", today],
    ["Yesterday", today - day],
    ["The last week", today - 7 * day],
    ["The last month", today - 30 * day],
    ["Before", Number.NEGATIVE_INFINITY],
  ];
  const groups = new Map<string, Conversation[]>();
  for (const conversation of conversations) {
    const title = ages.find(([, from]) => conversation.updated >= from)?.[0] ?? "Before";
    groups.set(title, [...(groups.get(title) ?? []), conversation]);
  }
  return [...groups];
}
