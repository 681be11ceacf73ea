/** `zinc model info`: what a model holds, without touching a GPU. */
import { resolveTemplate } from "../../chat/prompt.ts";
import { oneLine, UserError } from "../../errors.ts";
import type { GgufFile } from "../../gguf/file.ts";
import { openModelFile, openTokenizer } from "../../index.ts";
import { formatBytes } from "../../math.ts";
import { architectureNames, architectureOf } from "../../model/architectures.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import { command } from "../command.ts";
import { toggle } from "../flag.ts";
import { modelEnvironment, modelFlags, outputFlags } from "../flags.ts";
import { modelExitCode } from "../manual.ts";
import { chooseModel, openStore } from "../model-choice.ts";
import { warn, writeOut } from "../output.ts";

export const modelInfoCommand = command({
  name: "model info",
  summary: "Show what a model holds, without a GPU",
  description: `
    Reads the head of the file and prints its name, architecture, size, types, context and
    tokenizer, and whether zinc runs it. MODEL is the path of a file or the name of a model that
    is here; without it, it is what -m would be.
  `,
  flags: { ...modelFlags, tensors: toggle("list every tensor"), json: outputFlags.json },
  positionals: { MODEL: { description: "GGUF file or name, as behind -m", completes: "models" } },
  examples: {
    "zinc model info model.gguf": "look into a file",
    "zinc model info qwen3.5-2b --tensors": "a model that is here, with all its tensors",
  },
  environment: modelEnvironment,
  exitCodes: modelExitCode,
  async run({ model, tensors, json }, [given]) {
    const path = chooseModel(given ?? model);
    using file = await openModelFile(path);
    const info = { ...describeFile(file), ...describeManaged(path) };
    if (json === true) {
      await writeOut(
        `${JSON.stringify(tensors === true ? { ...info, tensors: file.tensors } : info)}\n`,
      );
      return;
    }
    for (const [key, value] of Object.entries(info))
      await writeOut(`${key.padEnd(14)} ${formatValue(value)}\n`);
    if (tensors !== true) return;
    for (const { name, dims, typeName } of file.tensors) {
      await writeOut(`${oneLine(name).padEnd(36)} ${typeName.padEnd(8)} ${dims.join(" × ")}\n`);
    }
  },
});

/** Where a managed model comes from; nothing for other files. */
function describeManaged(path: string | undefined) {
  const model = path === undefined ? undefined : openStore().findByPath(path);
  if (model === undefined) return {};
  const [first] = model.files;
  return {
    managed: model.name,
    source: model.source ?? null,
    added: model.added ?? null,
    sha256: first?.sha256 ?? null,
  };
}

function describeFile(file: GgufFile) {
  const { metadata, tensors } = file;
  const architecture = architectureOf(file);
  const tokenizer = tokenizerOf(file);
  const template = resolveTemplate(metadata, tokenizer);
  const types = new Map<string, number>();
  for (const { typeName, sizeBytes = 0 } of tensors)
    types.set(typeName, (types.get(typeName) ?? 0) + sizeBytes);
  const parameters = tensors.reduce((sum, { valueCount }) => sum + valueCount, 0);
  return {
    file: file.fileNames[0],
    parts: file.fileNames.length,
    name: metadata.string("general.name") ?? null,
    architecture,
    runs: architectureNames.includes(architecture),
    parameters,
    bytes: file.sizeBytes,
    types: Object.fromEntries([...types].toSorted(([, a], [, b]) => b - a)),
    context: metadata.count(`${architecture}.context_length`) ?? null,
    layers: metadata.count(`${architecture}.block_count`) ?? null,
    tokenizer: metadata.string("tokenizer.ggml.model") ?? null,
    preTokenizer: metadata.string("tokenizer.ggml.pre") ?? null,
    vocabulary: tokenizer?.vocabSize ?? null,
    endTokens: [...(tokenizer?.endOfGeneration ?? [])],
    template: template === undefined ? "none" : (template.problem ?? "usable"),
  };
}

/** Files whose tokenizer zinc lacks can still be looked into. */
function tokenizerOf(file: GgufFile): Tokenizer | undefined {
  try {
    return file.metadata.has("tokenizer.ggml.model") ? openTokenizer(file, warn) : undefined;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    warn(error.text);
    return undefined;
  }
}

function formatValue(value: unknown): string {
  if (value === null) return "–";
  if (Array.isArray(value)) return value.join(", ") || "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "object") return oneLine(String(value));
  return (
    Object.entries(value as Record<string, number>)
      .map(([name, bytes]) => `${name} ${formatBytes(bytes)}`)
      .join(", ") || "–"
  );
}
