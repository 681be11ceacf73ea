/** All conversations and what is done with them. Views watch its values and call its methods. */
import { Answer } from "./answer.ts";
import { ApiError, streamChat } from "./api.ts";
import { readArchive, writeArchive } from "./archive.ts";
import {
  newId,
  newestLeaf,
  pathTo,
  titleOf,
  type Conversation,
  type Message,
  type Messages,
} from "./conversation.ts";
import { requestBody } from "./prompt.ts";
import { keepDraft, settings } from "./settings.ts";
import { Storage } from "./storage.ts";
import { Value } from "./value.ts";

/** An answer that is being made. */
export interface Run {
  readonly message: string;
  readonly tokensPerSecond: number;
  readonly tokens: number;
}

/** How often a growing answer is written down. */
const saveIntervalMs = 1000;

const noMessages: Messages = new Map();

export class Chats {
  readonly conversations = new Value<readonly Conversation[]>([]);
  /** The one that is shown; null for one that has not begun. */
  readonly current = new Value<string | null>(null);
  /** Of each conversation that was opened. */
  readonly messages = new Value<ReadonlyMap<string, Messages>>(new Map());
  /** By conversation. */
  readonly runs = new Value<ReadonlyMap<string, Run>>(new Map());
  private readonly aborts = new Map<string, AbortController>();
  private readonly storage: Storage;
  private readonly now: () => number;

  private constructor(storage: Storage, now: () => number) {
    this.storage = storage;
    this.now = now;
  }

  static async open(
    onProblem: (problem: string) => void,
    now: () => number = Date.now,
  ): Promise<Chats> {
    const chats: { opened?: Chats } = {};
    const storage = await Storage.open(onProblem, (id) => void chats.opened?.reload(id));
    const opened = (chats.opened = new Chats(storage, now));
    opened.conversations.set(await storage.conversations());
    const { skippedCount } = storage;
    if (skippedCount > 0) {
      const records = skippedCount === 1 ? "record" : "records";
      const are = skippedCount === 1 ? "is" : "are";
      onProblem(`${skippedCount} damaged ${records} in the browser's storage ${are} not shown.`);
    }
    return opened;
  }

  conversation(id: string | null): Conversation | undefined {
    return this.conversations.get().find((one) => one.id === id);
  }

  messagesOf(id: string | null): Messages {
    return (id === null ? undefined : this.messages.get().get(id)) ?? noMessages;
  }

  /** Shows a conversation; null, or one that is not there, begins a new one. */
  async show(id: string | null): Promise<void> {
    const known = id !== null && this.conversation(id) !== undefined ? id : null;
    if (known !== null && !this.messages.get().has(known)) await this.load(known);
    this.current.set(known);
  }

  private async load(id: string): Promise<void> {
    const list = await this.storage.messages(id);
    this.setMessages(id, new Map(list.map((message) => [message.id, message])));
  }

  /** Another tab has changed it; what is being made here is left alone. */
  private async reload(id: string): Promise<void> {
    if (this.aborts.has(id)) return;
    const stored = await this.storage.conversation(id);
    const others = this.conversations.get().filter((one) => one.id !== id);
    this.conversations.set(sorted(stored === undefined ? others : [...others, stored]));
    if (stored === undefined && this.current.get() === id) this.current.set(null);
    else if (this.messages.get().has(id)) await this.load(id);
  }

  /** Does nothing while an answer is being made, so that a second Enter is harmless. */
  async send(text: string): Promise<void> {
    const conversation = this.conversation(this.current.get()) ?? this.begin(text);
    if (this.aborts.has(conversation.id)) return;
    const user = this.message(conversation, conversation.head, "user", text);
    await this.respond(conversation, [user]);
  }

  /** A new answer beside this one. */
  async regenerate(message: Message): Promise<void> {
    const conversation = this.conversation(message.conversation);
    if (conversation === undefined || this.aborts.has(conversation.id)) return;
    await this.respond({ ...conversation, head: message.parent }, []);
  }

  /** The user's message again in other words, beside the old one, and an answer to it. */
  async edit(message: Message, text: string): Promise<void> {
    const conversation = this.conversation(message.conversation);
    if (conversation === undefined || this.aborts.has(conversation.id)) return;
    await this.respond(conversation, [this.message(conversation, message.parent, "user", text)]);
  }

  /** The results of a message's tool calls, by the calls' ids. */
  async answerTools(message: Message, results: ReadonlyMap<string, string>): Promise<void> {
    const conversation = this.conversation(message.conversation);
    if (conversation === undefined || this.aborts.has(conversation.id)) return;
    let parent = message.id;
    const added = [...results].map(([toolCallId, content]) => {
      const result = { ...this.message(conversation, parent, "tool", content), toolCallId };
      parent = result.id;
      return result;
    });
    await this.respond(conversation, added);
  }

  /** Shows the branch on which this message is. */
  async choose(message: Message): Promise<void> {
    const head = newestLeaf(this.messagesOf(message.conversation), message.id);
    await this.amend(message.conversation, { head });
  }

  /** Changes some fields of a conversation without making it the newest. */
  async amend(
    id: string,
    some: Partial<Pick<Conversation, "title" | "system" | "head">>,
  ): Promise<void> {
    const conversation = this.conversation(id);
    if (conversation === undefined) return;
    const next = { ...conversation, ...some };
    this.setConversation(next);
    await this.storage.write([next]);
  }

  stop(id: string | null): void {
    if (id !== null) this.aborts.get(id)?.abort();
  }

  /** Removes a conversation and returns how to bring it back. */
  async remove(id: string): Promise<() => Promise<void>> {
    this.stop(id);
    const conversation = this.conversation(id);
    if (!this.messages.get().has(id)) await this.load(id);
    const messages = this.messagesOf(id);
    this.conversations.update((all) => all.filter((one) => one.id !== id));
    if (this.current.get() === id) this.current.set(null);
    keepDraft(id, "");
    await this.storage.remove(id);
    return async () => {
      if (conversation === undefined) return;
      this.setConversation(conversation);
      this.setMessages(id, messages);
      await this.storage.write([conversation], [...messages.values()]);
      await this.show(id);
    };
  }

  /** One conversation, or all, as the text of a file. */
  async export(id?: string): Promise<string> {
    const chosen = this.conversations.get().filter((one) => id === undefined || one.id === id);
    const messages = await Promise.all(
      chosen.map(async (one) => {
        const loaded = this.messages.get().get(one.id);
        return loaded === undefined ? await this.storage.messages(one.id) : [...loaded.values()];
      }),
    );
    return writeArchive(chosen, messages.flat());
  }

  /** Adds what a file holds; what is here already is replaced. Returns how many came. */
  async import(text: string): Promise<number> {
    const { conversations, messages } = readArchive(text);
    await this.storage.write(conversations, messages);
    const ids = new Set(conversations.map(({ id }) => id));
    const others = this.conversations.get().filter(({ id }) => !ids.has(id));
    this.conversations.set(sorted([...others, ...conversations]));
    for (const id of ids) await this.mergeMessages(id, messages);
    return conversations.length;
  }

  private async mergeMessages(id: string, messages: readonly Message[]): Promise<void> {
    if (!this.messages.get().has(id)) return;
    const own = messages.filter(({ conversation }) => conversation === id);
    this.setMessages(id, new Map([...this.messagesOf(id), ...own.map((m) => [m.id, m] as const)]));
  }

  private begin(text: string): Conversation {
    const now = this.now();
    const conversation: Conversation = {
      id: newId(),
      title: titleOf(text),
      system: settings.get().system,
      head: null,
      created: now,
      updated: now,
    };
    this.setMessages(conversation.id, new Map());
    this.setConversation(conversation);
    this.current.set(conversation.id);
    return conversation;
  }

  private message(
    conversation: Conversation,
    parent: string | null,
    role: Message["role"],
    content: string,
  ): Message {
    const fields = { parent, role, content, conversation: conversation.id, created: this.now() };
    return { ...fields, id: newId(), state: "done" };
  }

  /** Puts messages at the head, and an answer behind them. */
  private async respond(from: Conversation, added: readonly Message[]): Promise<void> {
    const controller = new AbortController();
    this.aborts.set(from.id, controller);
    const before = added.at(-1)?.id ?? from.head;
    const empty = this.message(from, before, "assistant", "");
    const { model } = settings.get();
    const answer: Message = {
      ...empty,
      // Behind the turn that it answers, also within one millisecond.
      created: empty.created + 1,
      state: "streaming",
      ...(model === "" ? {} : { model }),
    };
    const conversation = { ...from, head: answer.id, updated: answer.created };
    this.setConversation(conversation);
    this.putMessages(from.id, [...added, answer]);
    this.setRun(from.id, { message: answer.id, tokensPerSecond: 0, tokens: 0 });
    await this.storage.write([conversation], [...added, answer]);
    const path = pathTo(this.messagesOf(from.id), before);
    try {
      const body = requestBody(path, from.system, settings.get());
      await this.grow(answer, body, controller.signal);
    } finally {
      this.aborts.delete(from.id);
      this.setRun(from.id, undefined);
    }
  }

  /** Lets the answer grow as the stream does, drawn once a frame and saved once a second. */
  private async grow(message: Message, body: unknown, signal: AbortSignal): Promise<void> {
    const answer = new Answer(performance.now() / 1000);
    const draw = oncePerFrame(() => {
      this.putMessages(message.conversation, [{ ...message, ...answer.fields() }]);
      this.setRun(message.conversation, {
        message: message.id,
        tokensPerSecond: answer.liveSpeed,
        tokens: answer.stats()?.tokens ?? 0,
      });
    });
    let saved = this.now();
    let end: Partial<Message> = {};
    try {
      for await (const piece of streamChat(body, settings.get().apiKey, signal)) {
        answer.add(piece, performance.now() / 1000);
        draw.ask();
        if (this.now() - saved < saveIntervalMs) continue;
        saved = this.now();
        void this.storage.write([], [{ ...message, ...answer.fields() }]);
      }
      end = { state: answer.finishReason === "length" ? "cut" : "done" };
    } catch (error) {
      end = signal.aborted ? { state: "stopped" } : { state: "failed", error: textOf(error) };
    }
    draw.cancel();
    const stats = answer.stats();
    const last = {
      ...message,
      ...answer.fields(),
      ...end,
      ...(stats === undefined ? {} : { stats }),
    };
    if (this.conversation(message.conversation) === undefined) return;
    this.putMessages(message.conversation, [last]);
    await this.storage.write([], [last]);
  }

  private setConversation(conversation: Conversation): void {
    const others = this.conversations.get().filter(({ id }) => id !== conversation.id);
    this.conversations.set(sorted([...others, conversation]));
  }

  private setMessages(id: string, messages: Messages): void {
    this.messages.update((all) => new Map(all).set(id, messages));
  }

  private putMessages(id: string, messages: readonly Message[]): void {
    const next = new Map(this.messagesOf(id));
    for (const message of messages) next.set(message.id, message);
    this.setMessages(id, next);
  }

  private setRun(id: string, run: Run | undefined): void {
    this.runs.update((all) => {
      const next = new Map(all);
      if (run === undefined) next.delete(id);
      else next.set(id, run);
      return next;
    });
  }
}

function sorted(conversations: readonly Conversation[]): Conversation[] {
  return [...conversations].sort((a, b) => b.updated - a.updated);
}

function textOf(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  return error instanceof Error ? error.message : String(error);
}

/** However often it is asked, the work is done once before the next picture. */
function oncePerFrame(work: () => void): { ask(): void; cancel(): void } {
  let frame = 0;
  return {
    ask() {
      if (frame !== 0) return;
      frame = requestAnimationFrame(() => {
        frame = 0;
        work();
      });
    },
    cancel() {
      cancelAnimationFrame(frame);
    },
  };
}
