/** What could stand in the place of the last word of a command line, from the definitions alone. */
import type { Command, CommandTable } from "../command.ts";
import type { Completes, Flag, Flags } from "../flag.ts";
import { spelling } from "../options.ts";
import { namedModels, removableModels, sources } from "./model-names.ts";

export interface Candidate {
  readonly word: string;
  readonly description: string;
}

export interface Candidates {
  readonly words: readonly Candidate[];
  /** Whether names of files fit as well; the shell knows them best. */
  readonly files: boolean;
}

const none: Candidates = { words: [], files: false };

/** Spellings of commands that are no commands themselves. */
const shortcuts: readonly Candidate[] = [
  { word: "--check", description: "is everything as it should be?" },
  { word: "--version", description: "print the version" },
];

/** `words` are those behind "zinc" up to the one that is being typed, which may be empty. */
export async function candidates(
  commands: CommandTable,
  words: readonly string[],
): Promise<Candidates> {
  const { before, current, prefix } = split(words);
  const [first, ...rest] = before;
  if (first === undefined && !current.startsWith("-")) return matching(listed(commands), current);
  if (first === "help") return matching(listed(commands), current);
  const isCheck = before.includes("--check");
  const name = first !== undefined && !first.startsWith("-") ? first : isCheck ? "check" : "run";
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (entry === undefined) return none;
  const command = await entry.load();
  const behind = name === first ? rest : before.filter((word) => word !== "--check");
  const found = await within(command, behind, current, prefix);
  if (first !== undefined) return found;
  return { ...found, words: [...matching(shortcuts, current).words, ...found.words] };
}

interface Typed {
  readonly before: readonly string[];
  readonly current: string;
  /** What of the current word stays in front of a value: "--color=" if it is one word. */
  readonly prefix: string;
}

/** Bash takes "--color=auto" for three words. */
function split(words: readonly string[]): Typed {
  const all = [...words];
  const last = all.pop() ?? "";
  if (last === "=") return { before: all, current: "", prefix: "" };
  if (all.at(-1) === "=") return { before: all.slice(0, -1), current: last, prefix: "" };
  const attached = /^(--[\w-]+)=(.*)$/s.exec(last);
  const [, flag, value] = attached ?? [];
  if (flag === undefined || value === undefined) return { before: all, current: last, prefix: "" };
  return { before: [...all, flag], current: value, prefix: `${flag}=` };
}

async function within(
  command: Command,
  before: readonly string[],
  current: string,
  prefix: string,
): Promise<Candidates> {
  const { commands, flags, positionals } = command;
  if (commands !== undefined) {
    const [action, ...rest] = before;
    if (action === undefined && !current.startsWith("-"))
      return matching(listed(commands), current);
    const entry =
      action !== undefined && Object.hasOwn(commands, action) ? commands[action] : undefined;
    if (entry !== undefined) return within(await entry.load(), rest, current, prefix);
  }
  const { given, open, used } = read(before, flags);
  if (open !== undefined) return valuesOf(open.completes, current, prefix);
  if (current.startsWith("-") && !before.includes("--")) return freeFlags(flags, used, current);
  return valuesOf(Object.values(positionals)[given]?.completes, current, "");
}

interface Read {
  /** How many arguments stand there that are no flags. */
  readonly given: number;
  /** The flag whose value comes next. */
  readonly open: Flag<unknown> | undefined;
  readonly used: ReadonlySet<string>;
}

function read(before: readonly string[], flags: Flags): Read {
  const used = new Set<string>();
  let open: Flag<unknown> | undefined;
  let given = 0;
  let isPlain = false;
  for (const word of before) {
    if (word === "=") continue;
    if (open !== undefined) {
      open = undefined;
      continue;
    }
    const row = isPlain ? undefined : rowOf(word, flags);
    if (word === "--") isPlain = true;
    else if (row === undefined) given += word.startsWith("-") && !isPlain ? 0 : 1;
    else {
      used.add(row[0]);
      open = row[1].hint === undefined || word.includes("=") ? undefined : row[1];
    }
  }
  return { given, open, used };
}

function rowOf(word: string, flags: Flags): [string, Flag<unknown>] | undefined {
  const [name] = word.split("=");
  return Object.entries(flags).find(
    ([key, { alias }]) => name === `--${spelling(key)}` || name === `-${alias}`,
  );
}

/** Flags that are not there yet, and those that may be repeated. */
function freeFlags(flags: Flags, used: ReadonlySet<string>, current: string): Candidates {
  const free = Object.entries(flags).filter(
    ([key, { multiple }]) => !used.has(key) || multiple === true,
  );
  const words = free.map(([key, { description }]) => ({ word: `--${spelling(key)}`, description }));
  return matching(words, current);
}

function valuesOf(completes: Completes | undefined, current: string, prefix: string): Candidates {
  const { words, files } = allValues(completes);
  const fitting = matching(words, current).words;
  return { words: fitting.map((one) => ({ ...one, word: prefix + one.word })), files };
}

function allValues(completes: Completes | undefined): Candidates {
  if (completes === undefined) return none;
  if (completes === "files") return { words: [], files: true };
  if (completes === "names") return { words: namedModels(), files: false };
  if (completes === "models") return { words: namedModels(), files: true };
  if (completes === "removable") return { words: removableModels(), files: false };
  if (completes === "sources") return { words: sources(), files: true };
  return { words: completes.map((word) => ({ word, description: "" })), files: false };
}

function listed(commands: CommandTable): Candidate[] {
  return Object.entries(commands).map(([word, { summary }]) => ({ word, description: summary }));
}

function matching(words: readonly Candidate[], current: string): Candidates {
  return { words: words.filter(({ word }) => word.startsWith(current)), files: false };
}
