/** Which architectures there are, by their name in GGUF. */
import { UserError } from "../errors.ts";
import type { GgufFile } from "../gguf/file.ts";
import { Gemma } from "./gemma.ts";
import { Gemma2 } from "./gemma2.ts";
import { Gemma3 } from "./gemma3.ts";
import { Gemma4 } from "./gemma4.ts";
import { GptOss } from "./gpt-oss.ts";
import { Granite } from "./granite.ts";
import { Lfm2 } from "./lfm2.ts";
import { Llama } from "./llama.ts";
import { Mistral3 } from "./mistral3.ts";
import type { Model, ModelOptions } from "./model.ts";
import { Phi3 } from "./phi3.ts";
import { Qwen2 } from "./qwen2.ts";
import { Qwen2moe } from "./qwen2moe.ts";
import { Qwen3 } from "./qwen3.ts";
import { Qwen3moe } from "./qwen3moe.ts";
import { Qwen35 } from "./qwen35.ts";
import { Smollm3 } from "./smollm3.ts";

type Architecture = new (file: GgufFile, options: ModelOptions) => Model;

const architectures: Readonly<Record<string, Architecture>> = {
  llama: Llama,
  gemma: Gemma,
  gemma2: Gemma2,
  gemma3: Gemma3,
  gemma4: Gemma4,
  "gpt-oss": GptOss,
  granite: Granite,
  granitemoe: Granite,
  lfm2: Lfm2,
  lfm2moe: Lfm2,
  mistral3: Mistral3,
  phi3: Phi3,
  qwen2: Qwen2,
  qwen2moe: Qwen2moe,
  qwen3: Qwen3,
  qwen3moe: Qwen3moe,
  smollm3: Smollm3,
  qwen35: Qwen35,
  qwen35moe: Qwen35,
  qwen3next: Qwen35,
};

export const architectureNames: readonly string[] = Object.keys(architectures);

/** `general.architecture`; throws if the file does not say. */
export function architectureOf(file: GgufFile): string {
  const name = file.metadata.string("general.architecture");
  if (name !== undefined) return name;
  throw new UserError(
    "model",
    `${file.fileNames[0]}: metadata general.architecture is missing`,
    "the file is no model that zinc can run",
  );
}

/** Reads what a file says of its model; nothing is loaded yet. Throws for what zinc cannot run. */
export function describeModel(file: GgufFile, options: ModelOptions = {}): Model {
  const architecture = architectureOf(file);
  const Known = Object.hasOwn(architectures, architecture)
    ? architectures[architecture]
    : undefined;
  if (Known !== undefined) return new Known(file, options);
  throw new UserError(
    "model",
    `${file.fileNames[0]}: architecture "${architecture}" is not supported`,
    `zinc runs ${architectureNames.join(", ")}`,
  );
}
