/**
 * Where conversations stay: IndexedDB, one record for each message, so that a long answer is
 * written as it grows without writing the rest again, and two tabs never overwrite each other's.
 * Where the browser has no such storage (some private windows), all is kept until the page closes.
 */
import { readConversation, readMessage } from "./archive.ts";
import type { Conversation, Message } from "./conversation.ts";

const name = "zinc";
const version = 1;

export class Storage {
  private readonly database: IDBDatabase | undefined;
  private readonly onProblem: (problem: string) => void;
  private readonly channel = new BroadcastChannel("zinc-conversations");
  /** What was unreadable, and is left alone. */
  skippedCount = 0;

  private constructor(
    database: IDBDatabase | undefined,
    onProblem: (problem: string) => void,
    onChange: (conversation: string) => void,
  ) {
    this.database = database;
    this.onProblem = onProblem;
    this.channel.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
      if (typeof data === "string") onChange(data);
    });
  }

  /** `onChange` is told what another tab changed. */
  static async open(
    onProblem: (problem: string) => void,
    onChange: (conversation: string) => void,
  ): Promise<Storage> {
    const database = await openDatabase().catch(() => undefined);
    if (database === undefined) {
      onProblem("This browser keeps nothing here: export what you want to keep.");
    }
    return new Storage(database, onProblem, onChange);
  }

  async conversations(): Promise<Conversation[]> {
    const records = await this.read("conversations", (store) => store.getAll());
    return this.readable(records, readConversation).sort((a, b) => b.updated - a.updated);
  }

  async conversation(id: string): Promise<Conversation | undefined> {
    return readConversation(await this.read("conversations", (store) => store.get(id)));
  }

  async messages(conversation: string): Promise<Message[]> {
    const records = await this.read("messages", (store) =>
      store.index("conversation").getAll(conversation),
    );
    return this.readable(records, readMessage);
  }

  /** All in one transaction: everything is written, or nothing. */
  async write(
    conversations: readonly Conversation[],
    messages: readonly Message[] = [],
  ): Promise<void> {
    await this.change((transaction) => {
      for (const record of conversations) transaction.objectStore("conversations").put(record);
      for (const record of messages) transaction.objectStore("messages").put(record);
    });
    const changed = [...conversations.map(({ id }) => id), ...messages.map((m) => m.conversation)];
    for (const id of new Set(changed)) this.channel.postMessage(id);
  }

  async remove(conversation: string): Promise<void> {
    const messages = await this.messages(conversation);
    await this.change((transaction) => {
      transaction.objectStore("conversations").delete(conversation);
      for (const { id } of messages) transaction.objectStore("messages").delete(id);
    });
    this.channel.postMessage(conversation);
  }

  private readable<T>(records: unknown, read: (record: unknown) => T | undefined): T[] {
    const list = Array.isArray(records) ? records : [];
    const found = list.map(read).filter((record) => record !== undefined);
    this.skippedCount += list.length - found.length;
    return found;
  }

  private async read<T>(
    store: string,
    request: (store: IDBObjectStore) => IDBRequest<T>,
  ): Promise<T | undefined> {
    if (this.database === undefined) return undefined;
    try {
      return await resultOf(request(this.database.transaction(store).objectStore(store)));
    } catch (error) {
      this.onProblem(`The browser could not read its storage: ${messageOf(error)}`);
      return undefined;
    }
  }

  private async change(steps: (transaction: IDBTransaction) => void): Promise<void> {
    if (this.database === undefined) return;
    try {
      const transaction = this.database.transaction(["conversations", "messages"], "readwrite");
      const done = endOf(transaction);
      steps(transaction);
      await done;
    } catch (error) {
      const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
      this.onProblem(
        isFull
          ? "The browser's storage is full: delete conversations, or export this one."
          : `The browser could not keep this: ${messageOf(error)}`,
      );
    }
  }
}

function openDatabase(): Promise<IDBDatabase> {
  const request = indexedDB.open(name, version);
  request.addEventListener("upgradeneeded", () => {
    const database = request.result;
    database.createObjectStore("conversations", { keyPath: "id" });
    const messages = database.createObjectStore("messages", { keyPath: "id" });
    messages.createIndex("conversation", "conversation");
  });
  return resultOf(request);
}

function resultOf<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => reject(request.error ?? new Error("unknown")));
  });
}

function endOf(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = () => reject(transaction.error ?? new Error("unknown"));
    transaction.addEventListener("complete", () => resolve());
    transaction.addEventListener("error", fail);
    transaction.addEventListener("abort", fail);
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
