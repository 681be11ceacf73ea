/** The commands of a conversation: lines that begin with a slash. */
import { oneLine, UserError } from "../../errors.ts";
import type { Thinking } from "../../index.ts";
import { shorten, suggestion } from "../options.ts";
import { note, writeErr } from "../output.ts";
import type { ChatSession } from "./session.ts";
import { loadTranscript, saveTranscript } from "./transcript.ts";

interface ChatCommand {
  /** What stands behind it, for help. */
  readonly argument?: string;
  readonly summary: string;
  /** Returns "leave" to end the conversation. */
  run(session: ChatSession, argument: string): Promise<"leave" | void>;
}

const commands: Readonly<Record<string, ChatCommand>> = {
  help: {
    summary: "show this",
    run: async () => writeErr(helpText()),
  },
  clear: {
    summary: "begin anew; the system message stays",
    async run({ conversation }) {
      conversation.clear();
      note("the conversation is empty");
    },
  },
  regen: {
    summary: "answer the last question again",
    async run(session) {
      if (session.conversation.retract()) return session.respond({ isAgain: true });
      throw new UserError("usage", "there is no question to answer again", "say something first");
    },
  },
  system: {
    argument: "[TEXT]",
    summary: 'what the model is told before all else; "" for nothing',
    async run({ conversation }, argument) {
      if (argument !== "") conversation.system = argument === '""' ? undefined : argument;
      const { system } = conversation;
      note(system === undefined ? "no system message" : `system message: ${system}`);
    },
  },
  think: {
    argument: "[on|off|auto]",
    summary: "whether the model thinks before it answers",
    async run(session, argument) {
      if (argument !== "") session.think(thinkingOf(argument));
      note(`thinking: ${session.thinking}`);
    },
  },
  save: {
    argument: "FILE",
    summary: "write the conversation to a file",
    async run({ conversation }, path) {
      const { messages } = conversation;
      saveTranscript(requirePath("save", path), messages);
      note(`${countOf(messages.length)} saved to ${path}`);
    },
  },
  load: {
    argument: "FILE",
    summary: "go on with a conversation from a file",
    async run({ conversation }, path) {
      const messages = await loadTranscript(requirePath("load", path));
      conversation.replace(messages);
      note(`${countOf(messages.length)} loaded from ${path}`);
    },
  },
  stats: {
    summary: "how fast the last answer was, and how full the context is",
    run: async (session) => note(session.stats),
  },
  exit: {
    summary: "leave",
    run: async () => "leave",
  },
};

/** Whether a message is a command. A second slash makes it a message that begins with one. */
export function isCommand(message: string): boolean {
  return /^\/(?!\/)/.test(message);
}

/** Throws a "usage" error for an unknown command or a bad argument. */
export async function runCommand(session: ChatSession, line: string): Promise<"leave" | void> {
  const [, name = "", argument = ""] = /^\/(\S*)\s*(.*?)\s*$/s.exec(line) ?? [];
  const found = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (found === undefined) {
    const near = suggestion(name, Object.keys(commands))?.replace("mean ", "mean /");
    throw new UserError(
      "usage",
      `there is no command /${shorten(oneLine(name))}`,
      near ?? "/help lists them, and a second slash in front makes it a message",
    );
  }
  if (found.argument === undefined && argument !== "") {
    throw new UserError("usage", `/${name} takes nothing behind it`, `write /${name} alone`);
  }
  return found.run(session, argument);
}

function helpText(): string {
  const rows = Object.entries(commands).map(([name, { argument = "", summary }]) => {
    return `  ${`/${name} ${argument}`.padEnd(22)}${summary}`;
  });
  return [
    ...rows,
    "",
    "  A line goes on behind a backslash, Alt+Enter or Ctrl+J, and between three quotes.",
    "  Ctrl+C stops an answer, and leaves if it comes twice in a row. Ctrl+D leaves, too.",
    "",
  ].join("\n");
}

function thinkingOf(word: string): Thinking {
  if (word === "on" || word === "off" || word === "auto") return word;
  throw new UserError("usage", `/think ${shorten(word)}`, "write on, off or auto");
}

function requirePath(name: string, path: string): string {
  if (path !== "") return path;
  throw new UserError("usage", `/${name} needs a file`, `write /${name} chat.json`);
}

function countOf(messages: number): string {
  return messages === 1 ? "1 message" : `${messages} messages`;
}
