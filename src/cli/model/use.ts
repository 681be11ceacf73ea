/** `zinc model use`: chooses the active model. */
import { UserError } from "../../errors.ts";
import { configFolder } from "../../paths.ts";
import { writeActive } from "../../store/active-model.ts";
import { builtinName, normalName } from "../../store/model-name.ts";
import { command } from "../command.ts";
import { modelEnvironment, outputFlags } from "../flags.ts";
import { openStore, unknownModel } from "../model-choice.ts";
import { note, setQuiet } from "../output.ts";

export const modelUseCommand = command({
  name: "model use",
  summary: "Choose the model that is used where none is named",
  description: `
    Commands without -m and without ZINC_MODEL take this model from now on. spark is the small
    model inside zinc.
  `,
  flags: { quiet: outputFlags.quiet },
  positionals: { NAME: { description: "a model that is here", completes: "names" } },
  examples: {
    "zinc model use qwen3.5-2b": "use this model from now on",
    "zinc model use spark": "go back to the small model inside zinc",
  },
  environment: modelEnvironment,
  exitCodes: { 3: "there is no such model" },
  async run({ quiet }, [name]) {
    setQuiet(quiet === true);
    if (name === undefined) {
      throw new UserError("usage", "no model is named", "zinc model list shows the names");
    }
    chooseActive(name);
    note(`${normalName(name)} is used where no model is named`);
  },
});

/** Throws a "model" error if there is no such model. */
export function chooseActive(name: string): void {
  const folder = configFolder();
  if (folder === undefined) {
    throw new UserError("failed", "no home folder is known", "set XDG_CONFIG_HOME to a folder");
  }
  if (normalName(name) === builtinName) {
    writeActive(folder, undefined);
    return;
  }
  const model = openStore().find(name);
  if (model === undefined) throw unknownModel(name);
  writeActive(folder, model.name);
}
