/** `zinc model rm`: removes a model, and what was downloaded of one. */
import { UserError } from "../../errors.ts";
import { configFolder } from "../../paths.ts";
import { readActive, writeActive } from "../../store/active-model.ts";
import { builtinName, normalName } from "../../store/model-name.ts";
import { command } from "../command.ts";
import { toggle } from "../flag.ts";
import { modelEnvironment, outputFlags } from "../flags.ts";
import { openStore, unknownModel } from "../model-choice.ts";
import { note, setQuiet } from "../output.ts";

export const modelRmCommand = command({
  name: "model rm",
  summary: "Remove a model, and what was downloaded of it",
  description: `
    Removes the model from zinc's folder, and a download that is not finished. A file that was
    taken over from elsewhere on this machine stays where it came from.

    The active model is removed only with --force; then the small model inside zinc is active.
  `,
  flags: {
    force: toggle("also if it is the active model", { alias: "f" }),
    quiet: outputFlags.quiet,
  },
  positionals: { NAME: { description: "a model that is here", completes: "removable" } },
  examples: { "zinc model rm qwen3.5-2b": "remove a model" },
  environment: modelEnvironment,
  exitCodes: { 3: "there is no such model" },
  async run({ force, quiet }, [given]) {
    setQuiet(quiet === true);
    if (given === undefined) {
      throw new UserError("usage", "no model is named", "zinc model list shows the names");
    }
    const name = normalName(given);
    if (name === builtinName) {
      const remedy = "zinc model list --installed shows what can be removed";
      throw new UserError("usage", `${given} is the model inside zinc`, remedy);
    }
    const config = configFolder();
    const isActive = readActive(config) === name;
    if (isActive && force !== true) {
      const remedy = "choose another with zinc model use, or give --force";
      throw new UserError("failed", `${name} is the active model`, remedy);
    }
    if (!openStore().remove(name)) throw unknownModel(given);
    if (isActive && config !== undefined) writeActive(config, undefined);
    note(`${name} is removed`);
  },
});
