/** What a command is, and the help that follows from its definition. */
import { defineCommand, renderUsage, type ArgsDef } from "citty";
import { UserError } from "../errors.ts";
import type { Flags, Values } from "./flag.ts";
import { globalFlags } from "./flags.ts";
import { parseOptions, shorten, spelling } from "./options.ts";
import { colorize, setColor, writeOut } from "./output.ts";

export interface CommandDefinition<F extends Flags> {
  readonly name: string;
  readonly summary: string;
  readonly flags: F;
  /** The positional arguments, with what help says of them; more than these are refused. */
  readonly positionals?: Readonly<Record<string, string>>;
  /** What to do about an argument too many, where that is better known than "see help". */
  readonly remedy?: string;
  /** Does it and returns the exit code, 0 if none. */
  run(values: Values<F>, positionals: readonly string[]): Promise<number | void>;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly flags: Flags;
  help(): Promise<string>;
  run(args: readonly string[]): Promise<number>;
}

export function command<const F extends Flags>(definition: CommandDefinition<F>): Command {
  const { name, summary, flags, positionals = {} } = definition;
  const { remedy = `see zinc ${name} --help` } = definition;
  const all = { ...flags, ...globalFlags };
  const help = () => usage(name, summary, all, positionals);
  return {
    name,
    summary,
    flags: all,
    help,
    async run(args) {
      const parsed = parseOptions(args, all, process.env, `zinc ${name}`);
      const globals = parsed.values as Values<typeof globalFlags>;
      setColor(globals.color ?? "auto");
      if (globals.help === true) {
        await writeOut(await help());
        return 0;
      }
      const extra = parsed.positionals[Object.keys(positionals).length];
      if (extra !== undefined) {
        throw new UserError("usage", `unexpected argument "${shorten(extra)}"`, remedy);
      }
      return (await definition.run(parsed.values as Values<F>, parsed.positionals)) ?? 0;
    },
  };
}

async function usage(
  name: string,
  summary: string,
  flags: Flags,
  positionals: Readonly<Record<string, string>>,
): Promise<string> {
  const args: ArgsDef = {};
  for (const [key, description] of Object.entries(positionals)) {
    args[key] = { type: "positional", required: false, description };
  }
  for (const [key, flag] of Object.entries(flags)) {
    const alias = flag.alias === undefined ? {} : { alias: flag.alias };
    args[spelling(key)] =
      flag.hint === undefined
        ? { type: "boolean", description: flag.description, ...alias }
        : { type: "string", description: flag.description, valueHint: flag.hint, ...alias };
  }
  const rendered = await renderUsage(
    defineCommand({ meta: { name: `zinc ${name}`, description: summary }, args }),
  );
  const text = colorize("stdout") ? rendered : Bun.stripANSI(rendered);
  return `${text.replace(/ +$/gm, "").trimEnd()}\n`;
}
