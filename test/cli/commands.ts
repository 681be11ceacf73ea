/** All commands and actions, and what a line of the shell means among them. */
import { benchCommand } from "../../src/cli/bench.ts";
import { chatCommand } from "../../src/cli/chat.ts";
import { checkCommand } from "../../src/cli/check.ts";
import type { Command, CommandTable } from "../../src/cli/command.ts";
import { completionCommand } from "../../src/cli/completion.ts";
import { devicesCommand } from "../../src/cli/devices.ts";
import { logitsCommand } from "../../src/cli/logits.ts";
import { modelCommand } from "../../src/cli/model.ts";
import { perplexityCommand } from "../../src/cli/perplexity.ts";
import { runCommand } from "../../src/cli/run.ts";
import { serveCommand } from "../../src/cli/serve.ts";
import { templateCommand } from "../../src/cli/template.ts";
import { tokenizeCommand } from "../../src/cli/tokenize.ts";
import { verifyCommand } from "../../src/cli/verify.ts";

const actions = await Promise.all(
  Object.values(modelCommand.commands ?? {}).map((entry) => entry.load()),
);

const own = [
  benchCommand,
  chatCommand,
  checkCommand,
  devicesCommand,
  logitsCommand,
  modelCommand,
  perplexityCommand,
  runCommand,
  serveCommand,
  templateCommand,
  tokenizeCommand,
  verifyCommand,
];

/** As the root of the command line has it. */
export const table: CommandTable = Object.fromEntries(
  [...own, completionCommand({})].map((command) => [
    command.name,
    { summary: command.summary, load: () => Promise.resolve(command) },
  ]),
);

export const commands: readonly Command[] = [...own, completionCommand(table), ...actions];

/** The words of zinc's part of a line: "printf x | zinc tokenize > out" → ["tokenize"]. */
export function shellWords(line: string): string[] {
  const [, own = ""] = /\bzinc (.+)/.exec(line) ?? [];
  const words: readonly string[] = own.match(/"[^"]*"|[^\s)]+/g) ?? [];
  const end = words.findIndex((word) => /^\d?[|<>]$/.test(word));
  return words.slice(0, end < 0 ? undefined : end).map((word) => word.replaceAll('"', ""));
}

/** The command that these words call, and what is left for it. */
export function findCommand(words: readonly string[]): {
  readonly command: Command;
  readonly rest: readonly string[];
} {
  const [first = "", second = ""] = words;
  const named = (name: string) => commands.find((command) => command.name === name);
  const action = named(`${first} ${second}`);
  if (action !== undefined) return { command: action, rest: words.slice(2) };
  const command = named(first);
  if (command !== undefined) return { command, rest: words.slice(1) };
  if (!first.startsWith("-")) throw new Error(`no command ${first}`);
  if (first !== "--check") return { command: runCommand, rest: words };
  return { command: checkCommand, rest: words.slice(1) };
}
