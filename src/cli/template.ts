/** `zinc template`: renders a chat template with the JSON object on stdin, exactly as given. */
import { resolveTemplate, templateFailure } from "../chat/prompt.ts";
import { parseTemplateInput, type TemplateInput } from "../chat/template-input.ts";
import { UserError } from "../errors.ts";
import { openModelFile, openTokenizer } from "../index.ts";
import { clock } from "./clock.ts";
import { command } from "./command.ts";
import { modelEnvironment, modelFlags, promptFlags } from "./flags.ts";
import { readTextFile, requireStdin } from "./input.ts";
import { modelExitCode } from "./manual.ts";
import { chooseModel } from "./model-choice.ts";
import { warn, writeOut } from "./output.ts";

export const templateCommand = command({
  name: "template",
  summary: "Render the chat template with messages, tools and variables from stdin",
  description: `
    Reads a JSON object with messages and, if the template uses them, tools,
    add_generation_prompt and other variables, and prints the prompt as a JSON string. The input
    is given to the template exactly as it is. It needs no GPU.
  `,
  examples: {
    "zinc template -m model.gguf < messages.json": "what the model is really asked",
    "zinc template --template new.jinja < messages.json": "try another template",
  },
  environment: { ...modelEnvironment, ZINC_NOW: "the time that templates are told; default now" },
  exitCodes: modelExitCode,
  flags: { ...modelFlags, template: promptFlags.template },
  async run({ model, template: path }) {
    const now = clock();
    const given = path === undefined ? undefined : await readTextFile(path);
    using file = await openModelFile(chooseModel(model));
    const tokenizer = file.metadata.has("tokenizer.ggml.model") ? openTokenizer(file) : undefined;
    const resolved = resolveTemplate(file.metadata, tokenizer, given);
    if (resolved === undefined) {
      throw new UserError(
        "model",
        `${file.fileNames[0]} has no chat template`,
        "give one with --template",
      );
    }
    if (resolved.problem !== undefined)
      warn(`the model's own template cannot be used: ${resolved.problem}`);
    try {
      const input = readInput(await requireStdin(`pipe in ${exampleInput}`));
      const text = resolved.template.render(input, { now });
      await writeOut(`${JSON.stringify(text)}\n`);
    } catch (error) {
      throw templateFailure(error, "check the input, or give another template with --template");
    }
  },
});

const exampleInput = '{"messages": [{"role": "user", "content": "Hello"}]}';

function readInput(json: string): TemplateInput {
  try {
    const input = parseTemplateInput(json);
    if (typeof input === "object" && input !== null && !Array.isArray(input))
      return input as TemplateInput;
  } catch {
    // Told below.
  }
  throw new UserError("usage", "stdin is no JSON object", `write ${exampleInput}`);
}
