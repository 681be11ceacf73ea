/**
 * The command line's root: finds the command, and is the one place where errors become exit codes.
 */
import type { CommandTable } from "./cli/command.ts";
import { shorten, suggestion } from "./cli/options.ts";
import {
  ClosedOutput,
  printError,
  setColor,
  writeErr,
  writeOut,
  type ColorMode,
} from "./cli/output.ts";
import { listenForSignals, signalExitCode } from "./cli/signals.ts";
import { exitCodes, InvariantError, UserError } from "./errors.ts";
import { takeValidationMessages } from "./vulkan/validation.ts";

const commands: CommandTable = {
  run: {
    summary: "complete one prompt",
    load: async () => (await import("./cli/run.ts")).runCommand,
  },
  chat: {
    summary: "hold a conversation",
    load: async () => (await import("./cli/chat.ts")).chatCommand,
  },
  serve: {
    summary: "serve APIs and a page to chat over HTTP",
    load: async () => (await import("./cli/serve.ts")).serveCommand,
  },
  check: {
    summary: "look at driver, device and model, and test them",
    load: async () => (await import("./cli/check.ts")).checkCommand,
  },
  bench: {
    summary: "measure speed",
    load: async () => (await import("./cli/bench.ts")).benchCommand,
  },
  verify: {
    summary: "check every kernel on this device",
    load: async () => (await import("./cli/verify.ts")).verifyCommand,
  },
  devices: {
    summary: "list the Vulkan devices",
    load: async () => (await import("./cli/devices.ts")).devicesCommand,
  },
  model: {
    summary: "download, choose and look into models",
    load: async () => (await import("./cli/model.ts")).modelCommand,
  },
  tokenize: {
    summary: "text to token ids",
    load: async () => (await import("./cli/tokenize.ts")).tokenizeCommand,
  },
  template: {
    summary: "render a chat template",
    load: async () => (await import("./cli/template.ts")).templateCommand,
  },
  logits: {
    summary: "the raw output behind some tokens",
    load: async () => (await import("./cli/logits.ts")).logitsCommand,
  },
  perplexity: {
    summary: "how well a model predicts a text",
    load: async () => (await import("./cli/perplexity.ts")).perplexityCommand,
  },
  completion: {
    summary: "let a shell complete commands, flags and models",
    load: async () => (await import("./cli/completion.ts")).completionCommand(commands),
  },
};

async function main(args: readonly string[]): Promise<number> {
  requireBun();
  listenForSignals();
  setColor(wishedColor(args));
  const [first, second] = args;
  if (first === "help" && second !== undefined) return main([...args.slice(1), "--help"]);
  if (first === undefined || (["help", "--help", "-h"].includes(first) && second === undefined)) {
    await writeOut(help());
    return 0;
  }
  if (["--version", "-v", "-V", "version"].includes(first)) {
    const { versionText } = await import("./cli/version.ts");
    await writeOut(versionText());
    return 0;
  }
  const { name, rest } = findCommand(args);
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) {
    throw new UserError("usage", `unknown command "${shorten(name)}"`, commandRemedy(name));
  }
  return (await entry.load()).run(rest);
}

/** What was meant by a word that is no command. */
function commandRemedy(name: string): string {
  if (name.endsWith(".gguf")) return `write zinc -m ${name} --prompt "Hello"`;
  if (/\s/.test(name)) return 'put a prompt behind --prompt, as in zinc --prompt "Hello"';
  return suggestion(name, Object.keys(commands)) ?? "zinc --help lists the commands";
}

/** `zinc --check …` and `zinc -m M --prompt …` are commands without their names. */
function findCommand(args: readonly string[]): { name: string; rest: readonly string[] } {
  const [first = "", ...rest] = args;
  if (!first.startsWith("-")) return { name: first, rest };
  if (args.includes("--check"))
    return { name: "check", rest: args.filter((arg) => arg !== "--check") };
  return { name: "run", rest: args };
}

function help(): string {
  const rows = Object.entries(commands).map(
    ([name, { summary }]) => `  ${name.padEnd(12)}${summary}`,
  );
  return [
    "zinc runs large language models from GGUF files on any GPU with a Vulkan driver.",
    "",
    '  zinc -m model.gguf --prompt "Hello"    complete a prompt',
    '  zinc --prompt "Hello"                  the same with the small model inside zinc',
    "  zinc chat                              hold a conversation",
    "  zinc serve --open                      chat in a browser, and serve programs",
    "  zinc --check                           is everything as it should be?",
    "",
    "Commands, each with --help:",
    ...rows,
    "",
    "Every flag can also be set as a variable: --max-tokens as ZINC_MAX_TOKENS.",
    "",
  ].join("\n");
}

/** Errors in the arguments are coloured as asked, too, so this is known before they are parsed. */
function wishedColor(args: readonly string[]): ColorMode {
  const joined = args.find((arg) => arg.startsWith("--color="))?.slice("--color=".length);
  const split = args.includes("--color") ? args[args.indexOf("--color") + 1] : undefined;
  const wish = joined ?? split ?? process.env["ZINC_COLOR"];
  return wish === "always" || wish === "never" ? wish : "auto";
}

function requireBun(): void {
  if (Bun.semver.satisfies(Bun.version, ">=1.4.0")) return;
  throw new UserError("failed", `Bun ${Bun.version} is too old`, "install Bun 1.4 or newer");
}

/** What a person sees of an error, and the exit code that goes with it. */
function report(error: unknown): number {
  if (error instanceof ClosedOutput) return signalExitCode() ?? 0;
  printError(error instanceof UserError ? error.text : describeBug(error));
  if (process.env["ZINC_DEBUG"] === "1") writeErr(`${Bun.inspect(error)}\n`);
  return error instanceof UserError ? exitCodes[error.kind] : 1;
}

function describeBug(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const kind = error instanceof InvariantError ? "a bug in zinc" : "unexpected";
  return `${kind}: ${message.replaceAll("\n", " ")}; please report it (ZINC_DEBUG=1 shows where)`;
}

for (const event of ["uncaughtException", "unhandledRejection"]) {
  process.on(event, (error) => process.exit(report(error)));
}
const code = await main(process.argv.slice(2)).catch(report);
const validation = takeValidationMessages();
if (validation !== "") printError(`the validation layer says:\n${validation}`);
process.exit(validation === "" ? code : code || 1);
