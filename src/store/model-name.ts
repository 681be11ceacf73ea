/** The names of managed models: what may be one, and which one follows from a file. */
import { basename } from "node:path";
import { UserError } from "../errors.ts";

/** Means the model inside the executable wherever a model is named. */
export const builtinName = "spark";

const nameLengthMax = 100;

/** Names are folders, on file systems that may not tell upper case from lower. */
export function normalName(name: string): string {
  return name.toLowerCase();
}

/** Whether this may be the name of a model: a word that is no path and no file. */
export function isModelName(name: string): boolean {
  const isWord = /^[a-z0-9][a-z0-9._-]*$/i.test(name) && !name.endsWith(".");
  return isWord && name.length <= nameLengthMax && !/\.gguf$/i.test(name);
}

/** Throws a "usage" error for what cannot be a name, or is taken by the model inside zinc. */
export function requireModelName(name: string): string {
  if (normalName(name) === builtinName) {
    throw new UserError("usage", `${name} is the model inside zinc`, "choose another name");
  }
  if (isModelName(name)) return normalName(name);
  const remedy = `use letters, digits, ".", "_" and "-", at most ${nameLengthMax}`;
  throw new UserError("usage", `"${name.slice(0, nameLengthMax)}" cannot name a model`, remedy);
}

/** "Qwen3-8B-Q4_K_M-00001-of-00003.gguf" → "qwen3-8b-q4_k_m". */
export function nameOfFile(path: string): string {
  const stem = basename(path)
    .replace(/\.gguf$/i, "")
    .replace(/-\d{5}-of-\d{5}$/, "");
  const name = stem.replace(/[^a-z0-9._-]+/gi, "-").replace(/^[^a-z0-9]+|[.-]+$/gi, "");
  return requireModelName(name.slice(0, nameLengthMax) || "model");
}
