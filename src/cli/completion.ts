/** `zinc completion`: what a shell needs to complete zinc's commands, flags and models. */
import { UserError } from "../errors.ts";
import { command, type Command, type CommandTable } from "./command.ts";
import { candidates } from "./completion/candidates.ts";
import { scripts } from "./completion/scripts.ts";
import { shorten, suggestion } from "./options.ts";
import { writeOut } from "./output.ts";

/** The action by which the scripts ask. */
const asking = "candidates";

/** `commands` is the table of all of them, this one included. */
export function completionCommand(commands: CommandTable): Command {
  const shells = Object.keys(scripts);
  return command({
    name: "completion",
    summary: "Print a script that lets a shell complete commands, flags and models",
    description: `
      Prints a script for bash, zsh or fish, to be read when the shell starts. It completes
      commands, flags, their values, the names of models that are here and of those that can be
      pulled.

      The script asks zinc for the words that fit: zinc completion candidates -- WORD… prints them
      for the last of the words, one a line, with a tab and a description behind it; the line
      :files stands for the names of files.
    `,
    flags: {},
    positionals: {
      SHELL: { description: shells.join(", "), completes: shells },
      WORD: { description: `behind ${asking}: what was typed so far`, repeats: true },
    },
    examples: {
      "source <(zinc completion bash)": "this shell; in ~/.bashrc, every shell",
      "zinc completion zsh > ~/.zfunc/_zinc": "zsh, with ~/.zfunc in fpath before compinit",
      "zinc completion fish > ~/.config/fish/completions/zinc.fish": "fish",
    },
    async run(_values, [action, ...words]) {
      if (action === asking) {
        await writeOut(await answer(commands, words));
        return;
      }
      const [extra] = words;
      if (extra !== undefined) {
        const remedy = "see zinc completion --help";
        throw new UserError("usage", `unexpected argument "${shorten(extra)}"`, remedy);
      }
      await writeOut(scriptFor(action));
    },
  });
}

function scriptFor(shell: string | undefined): string {
  const shells = Object.keys(scripts);
  const usual = `write zinc completion ${shells.join("|")}`;
  if (shell === undefined) throw new UserError("usage", "no shell is named", usual);
  const script = Object.hasOwn(scripts, shell) ? scripts[shell] : undefined;
  if (script !== undefined) return script;
  const remedy = suggestion(shell, shells) ?? usual;
  throw new UserError("usage", `unknown shell "${shorten(shell)}"`, remedy);
}

async function answer(commands: CommandTable, typed: readonly string[]): Promise<string> {
  const { words, files } = await candidates(commands, typed);
  const lines = words.map(({ word, description }) => `${word}\t${description}\n`);
  return lines.join("") + (files ? ":files\n" : "");
}
