/** What a command is, and the help that follows from its definition. */
import { UserError } from "../errors.ts";
import type { Completes, Flags, Values } from "./flag.ts";
import { globalFlags } from "./flags.ts";
import { manual, type Manual } from "./manual.ts";
import { parseOptions, shorten, suggestion } from "./options.ts";
import { setColor, writeOut } from "./output.ts";

export interface Positional {
  readonly description: string;
  readonly completes?: Completes;
  /** The last may be given any number of times. */
  readonly repeats?: boolean;
}

export interface CommandDefinition<F extends Flags> extends Manual {
  readonly flags: F;
  /** More than these are refused. */
  readonly positionals?: Readonly<Record<string, Positional>>;
  /** What to do about an argument too many, where that is better known than "see help". */
  readonly remedy?: string;
  /** Does it and returns the exit code, 0 if none. */
  run(values: Values<F>, positionals: readonly string[]): Promise<number | void>;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly flags: Flags;
  readonly positionals: Readonly<Record<string, Positional>>;
  /** Of a command that only has others. */
  readonly commands?: CommandTable;
  help(): Promise<string>;
  run(args: readonly string[]): Promise<number>;
}

/** Commands by name, loaded on demand so that `zinc --version` starts at once. */
export type CommandTable = Readonly<
  Record<string, { readonly summary: string; load(): Promise<Command> }>
>;

export function command<const F extends Flags>(definition: CommandDefinition<F>): Command {
  const { name, summary, flags, positionals = {} } = definition;
  const { remedy = `see zinc ${name} --help` } = definition;
  const all = { ...flags, ...globalFlags };
  const help = () => manual(definition, all, positionals);
  return {
    name,
    summary,
    flags: all,
    positionals,
    help,
    async run(args) {
      const parsed = parseOptions(args, all, process.env, `zinc ${name}`);
      const globals = parsed.values as Values<typeof globalFlags>;
      setColor(globals.color ?? "auto");
      if (globals.help === true) {
        await writeOut(await help());
        return 0;
      }
      const isOpen = Object.values(positionals).at(-1)?.repeats === true;
      const extra = isOpen ? undefined : parsed.positionals[Object.keys(positionals).length];
      if (extra !== undefined) {
        throw new UserError("usage", `unexpected argument "${shorten(extra)}"`, remedy);
      }
      return (await definition.run(parsed.values as Values<F>, parsed.positionals)) ?? 0;
    },
  };
}

export interface GroupDefinition extends Manual {
  readonly commands: CommandTable;
  /** What to do about a word that is no action and near none. */
  remedy(word: string): string;
}

/** A command whose first argument is another. */
export function commandGroup(definition: GroupDefinition): Command {
  const { name, summary, commands } = definition;
  const help = () => manual(definition, globalFlags, {}, commands);
  return {
    name,
    summary,
    flags: globalFlags,
    positionals: {},
    commands,
    help,
    async run(args) {
      const [first, ...rest] = args;
      if (first === undefined) {
        const remedy = `write zinc ${name} ${Object.keys(commands).join("|")}`;
        throw new UserError("usage", "no action is given", remedy);
      }
      const entry = Object.hasOwn(commands, first) ? commands[first] : undefined;
      if (entry !== undefined) return (await entry.load()).run(rest);
      if (first.startsWith("-")) {
        // --help, and --color with it; the action comes before all other flags.
        const { values } = parseOptions(args, globalFlags, process.env, `zinc ${name}`);
        setColor(values.color ?? "auto");
        if (values.help !== true) return this.run([]);
        await writeOut(await help());
        return 0;
      }
      const remedy = suggestion(first, Object.keys(commands)) ?? definition.remedy(first);
      throw new UserError("usage", `unknown action "${shorten(first)}"`, remedy);
    },
  };
}
