/** `zinc tokenize`: text → token ids. */
import { UserError } from "../errors.ts";
import { openModelFile, openTokenizer } from "../index.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { command } from "./command.ts";
import { toggle } from "./flag.ts";
import { modelEnvironment, modelFlags } from "./flags.ts";
import { requireStdin } from "./input.ts";
import { modelExitCode } from "./manual.ts";
import { chooseModel } from "./model-choice.ts";
import { warn, writeOut } from "./output.ts";

export const tokenizeCommand = command({
  name: "tokenize",
  summary: "Print the token ids of the text on stdin",
  description: `
    Prints a JSON list of ids. Nothing is added: no token for the beginning or the end. Special
    tokens in the text are plain text unless --special is given. It needs no GPU, and works with
    files that hold only a vocabulary.
  `,
  examples: {
    'printf "Hello" | zinc tokenize': "ids of a text",
    "zinc tokenize -m model.gguf --special < prompt.txt": "a prompt with special tokens in it",
    "zinc tokenize --jsonl < texts.jsonl": "many texts, one a line",
  },
  environment: modelEnvironment,
  exitCodes: modelExitCode,
  flags: {
    ...modelFlags,
    special: toggle("the text may contain special tokens"),
    jsonl: toggle("a JSON string a line in, a list of ids a line out"),
  },
  async run({ model, special = false, jsonl }) {
    using file = await openModelFile(chooseModel(model));
    const tokenizer = openTokenizer(file, warn);
    if (tokenizer === undefined) {
      throw new UserError(
        "model",
        `${file.fileNames[0]} has no tokenizer`,
        "choose another model with -m",
      );
    }
    const text = await requireStdin('pipe a text in, as in printf "Hello" | zinc tokenize');
    if (jsonl === true) await tokenizeLines(tokenizer, text, special);
    else await writeOut(`${JSON.stringify(tokenizer.encode(text, { special }))}\n`);
  },
});

async function tokenizeLines(tokenizer: Tokenizer, input: string, special: boolean): Promise<void> {
  const lines = input.split("\n");
  for (const [i, line] of lines.entries()) {
    if (line.trim() === "" && i === lines.length - 1) continue;
    await writeOut(`${JSON.stringify(tokenizer.encode(parseLine(line, i + 1), { special }))}\n`);
  }
}

function parseLine(line: string, number: number): string {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "string") return value;
  } catch {
    // Told below.
  }
  throw new UserError(
    "usage",
    `line ${number} of stdin is no JSON string`,
    'write "text" in double quotes',
  );
}
