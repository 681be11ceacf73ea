/** The help of a command, as long as a page of a manual, from its definition. */
import { defineCommand, renderUsage, type ArgsDef } from "citty";
import type { CommandTable, Positional } from "./command.ts";
import type { Flags } from "./flag.ts";
import { spelling, variableName } from "./options.ts";
import { colorize, paint } from "./output.ts";

/** What help says of a command besides its flags. */
export interface Manual {
  /** As typed behind "zinc". */
  readonly name: string;
  readonly summary: string;
  /** Paragraphs, with an empty line between; how their lines break does not matter. */
  readonly description: string;
  /** Lines to type, and what each does. */
  readonly examples: Readonly<Record<string, string>>;
  /** Variables besides those that stand in for flags. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly exitCodes?: Readonly<Record<number, string>>;
}

/** Holds for every command, unless it says otherwise. */
const usualExitCodes: Readonly<Record<number, string>> = {
  0: "it went well",
  1: "it failed",
  2: "the arguments are wrong",
};

/** For commands that open a model. */
export const modelExitCode = {
  3: "the model is missing, unreadable, damaged or not supported",
} as const;

/** For commands that also run it. */
export const runExitCodes = {
  ...modelExitCode,
  4: "there is no Vulkan loader, driver or usable device",
  5: "the model does not fit into the memory of the device",
  130: "it was interrupted with Ctrl+C; 143: it was terminated",
} as const;

const width = 88;

export async function manual(
  page: Manual,
  flags: Flags,
  positionals: Readonly<Record<string, Positional>>,
  commands: CommandTable = {},
): Promise<string> {
  const { name, summary, description, examples, exitCodes } = page;
  const { usage, options } = await renderFlags(name, summary, flags, positionals);
  const actions = Object.entries(commands).map(([key, entry]) => [key, entry.summary] as const);
  const example = Object.keys(flags).find((key) => key !== "help" && key !== "color");
  const environment = {
    ...page.environment,
    ...(example !== undefined && {
      [variableName(example)]: `stands in for --${spelling(example)}, and so for every other flag`,
    }),
  };
  const sections = [
    actions.length === 0 ? usage : usage.replace("[OPTIONS]", "ACTION [OPTIONS]"),
    description
      .trim()
      .split(/\n\s*\n/)
      .map((paragraph) => wrap(paragraph, ""))
      .join("\n\n"),
    list("ACTIONS", actions),
    options,
    list("EXAMPLES", Object.entries(examples)),
    list("ENVIRONMENT", Object.entries(environment)),
    list("EXIT CODES", Object.entries({ ...usualExitCodes, ...exitCodes })),
  ];
  return `${sections.filter((section) => section !== "").join("\n\n")}\n`;
}

/** What citty makes of the flags, cut where the description belongs. */
async function renderFlags(
  name: string,
  summary: string,
  flags: Flags,
  positionals: Readonly<Record<string, Positional>>,
): Promise<{ usage: string; options: string }> {
  const args: ArgsDef = {};
  for (const [key, { description }] of Object.entries(positionals)) {
    args[key] = { type: "positional", required: false, description };
  }
  for (const [key, flag] of Object.entries(flags)) {
    const alias = flag.alias === undefined ? {} : { alias: flag.alias };
    args[spelling(key)] =
      flag.hint === undefined
        ? { type: "boolean", description: flag.description, ...alias }
        : { type: "string", description: flag.description, valueHint: flag.hint, ...alias };
  }
  const meta = { name: `zinc ${name}`, description: summary };
  const rendered = await renderUsage(defineCommand({ meta, args }));
  const text = (colorize("stdout") ? rendered : Bun.stripANSI(rendered)).replace(/ +$/gm, "");
  const [title = "", usage = "", ...options] = text.trimEnd().split("\n\n");
  return { usage: `${title}\n\n${usage}`, options: options.join("\n\n") };
}

/** Rows of two columns; the second goes below where the first is too long. */
function list(title: string, rows: readonly (readonly [string, string])[]): string {
  if (rows.length === 0) return "";
  const column = Math.min(Math.max(...rows.map(([key]) => key.length)), 44);
  const lines = rows.map(([key, text]) => {
    const indent = " ".repeat(column + 6);
    const body = wrap(text, indent).slice(indent.length);
    const shown = paint(key.padEnd(column), "cyan", "stdout");
    return key.length > column ? `  ${shown}\n${indent}${body}` : `  ${shown}    ${body}`;
  });
  return `${paint(title, "title", "stdout")}\n\n${lines.join("\n")}`;
}

function wrap(text: string, indent: string): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.trim().split(/\s+/)) {
    if (line.length > indent.length && line.length + 1 + word.length > width) {
      lines.push(line);
      line = indent;
    }
    line += line.length > indent.length ? ` ${word}` : word;
  }
  return [...lines, line].join("\n");
}
