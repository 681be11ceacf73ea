/** `zinc logits`: the raw output of the model behind some tokens. */
import { UserError } from "../errors.ts";
import { command } from "./command.ts";
import { toggle } from "./flag.ts";
import { contextFlags, modelEnvironment, modelFlags, placeFlags, promptFlags } from "./flags.ts";
import { runExitCodes } from "./manual.ts";
import { loadModel } from "./model-options.ts";
import { writeOut } from "./output.ts";

export const logitsCommand = command({
  name: "logits",
  summary: "Print the logits behind token ids",
  description: `
    Prints the output of the model before any sampling, as a JSON list with a number for each
    token of the vocabulary: for the last position or, with --all, a list for each.
  `,
  examples: {
    "zinc logits --tokens 1,2,3": "behind the third token",
    "zinc logits -m model.gguf --tokens 1,2,3 --all": "behind each of them",
  },
  environment: modelEnvironment,
  exitCodes: runExitCodes,
  flags: {
    ...modelFlags,
    tokens: promptFlags.tokens,
    all: toggle("a list for every position, not only the last"),
    ...contextFlags,
    ...placeFlags,
  },
  async run(values) {
    const { tokens, all } = values;
    if (tokens === undefined)
      throw new UserError("usage", "no tokens are given", "write --tokens 1,2,3");
    using model = await loadModel({ ...values, draft: "off" });
    if (all !== true) {
      await writeOut(`${JSON.stringify(Array.from(model.logits(tokens)))}\n`);
      return;
    }
    const lists: string[] = [];
    model.forEachLogits(tokens, (_index, logits) => lists.push(JSON.stringify(Array.from(logits))));
    await writeOut(`[${lists.join(",")}]\n`);
  },
});
