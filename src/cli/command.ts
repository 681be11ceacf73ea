/** What a command is, and the help that follows from its definition. */
import { defineCommand, renderUsage, type ArgsDef } from "citty";
import { UserError } from "../errors.ts";
import type { Flags, Values } from "./flag.ts";
import { globalFlags } from "./flags.ts";
import { parseOptions, spelling } from "./options.ts";
import { colorize, writeOut } from "./output.ts";

export interface CommandDefinition<F extends Flags> {
  readonly name: string;
  readonly summary: string;
  readonly flags: F;
  /** Names of the positional arguments, for help; more than these are refused. */
  readonly positionals?: readonly string[];
  /** Does it and returns the exit code, 0 if none. */
  run(values: Values<F>, positionals: readonly string[]): Promise<number | void>;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  readonly flags: Flags;
  run(args: readonly string[]): Promise<number>;
}

export function command<const F extends Flags>(definition: CommandDefinition<F>): Command {
  const { name, summary, flags, positionals = [] } = definition;
  const all = { ...flags, ...globalFlags };
  return {
    name,
    summary,
    flags: all,
    async run(args) {
      const parsed = parseOptions(args, all);
      if (parsed.values.help === true) {
        await writeOut(await usage(name, summary, all, positionals));
        return 0;
      }
      const extra = parsed.positionals[positionals.length];
      if (extra !== undefined) {
        throw new UserError("usage", `unexpected argument "${extra}"`, `see zinc ${name} --help`);
      }
      return (await definition.run(parsed.values as Values<F>, parsed.positionals)) ?? 0;
    },
  };
}

async function usage(
  name: string,
  summary: string,
  flags: Flags,
  positionals: readonly string[],
): Promise<string> {
  const args: ArgsDef = {};
  for (const positional of positionals) args[positional] = { type: "positional", required: false };
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
  return `${colorize("stdout") ? rendered : Bun.stripANSI(rendered)}\n`;
}
