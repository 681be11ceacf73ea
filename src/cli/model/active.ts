/** `zinc model active`: which model is used where none is named. */
import { configFolder } from "../../paths.ts";
import { readActive } from "../../store/active-model.ts";
import { builtinName } from "../../store/model-name.ts";
import { command } from "../command.ts";
import { modelEnvironment, outputFlags } from "../flags.ts";
import { modelExitCode } from "../manual.ts";
import { chooseModel } from "../model-choice.ts";
import { writeOut } from "../output.ts";

export const modelActiveCommand = command({
  name: "model active",
  summary: "Print the model that is used where none is named",
  description: `
    Prints the name that zinc model use has chosen: spark, the small model inside zinc, if none
    was. -m and ZINC_MODEL come before it.
  `,
  flags: { json: outputFlags.json },
  examples: {
    "zinc model active": "its name",
    "zinc model active --json | jq -r .path": "its file, or null for the model inside zinc",
  },
  environment: modelEnvironment,
  exitCodes: modelExitCode,
  async run({ json }) {
    const path = chooseModel(undefined) ?? null;
    const name = readActive(configFolder()) ?? builtinName;
    await writeOut(json === true ? `${JSON.stringify({ name, path })}\n` : `${name}\n`);
  },
});
