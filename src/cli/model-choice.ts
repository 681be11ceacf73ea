/**
 * Which model a command works with: -m, which a variable may stand in for, else the active model,
 * else the one inside zinc.
 */
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { UserError } from "../errors.ts";
import { configFolder, modelsFolder } from "../paths.ts";
import { readActive } from "../store/active-model.ts";
import { catalog, catalogEntry } from "../store/catalog.ts";
import { builtinName, isModelName, normalName } from "../store/model-name.ts";
import { ModelStore } from "../store/model-store.ts";
import { suggestion } from "./options.ts";

/** The path of the file; undefined for the model inside zinc. `given` is a path or a name. */
export function chooseModel(given: string | undefined): string | undefined {
  if (given === undefined) return activePath();
  if (normalName(given) === builtinName) return undefined;
  if (!isModelName(given)) return given;
  // A name before a file of this name: ./name is always the file.
  const model = openStore().find(given);
  if (model !== undefined) return model.path;
  if (existsSync(given)) return given;
  throw unknownModel(given);
}

/** What the model in a file is called: as a managed model, else like its file. */
export function nameOfModel(path: string | undefined): string {
  if (path === undefined) return builtinName;
  const folder = modelsFolder();
  const managed = folder === undefined ? undefined : new ModelStore(folder).findByPath(path);
  return managed?.name ?? basename(path).replace(/(-\d{5}-of-\d{5})?\.gguf$/i, "");
}

/** The managed models. Throws a "failed" error where no home folder is known. */
export function openStore(): ModelStore {
  const folder = modelsFolder();
  if (folder !== undefined) return new ModelStore(folder);
  throw new UserError("failed", "no home folder is known", "set ZINC_MODELS to a folder");
}

function activePath(): string | undefined {
  const name = readActive(configFolder());
  if (name === undefined) return undefined;
  const model = openStore().find(name);
  if (model !== undefined) return model.path;
  throw new UserError(
    "model",
    `the active model ${name} is not in ${openStore().folder}`,
    `zinc model pull ${name} fetches it, and zinc model use chooses another`,
  );
}

/** The error for a name that is neither a managed model nor a file. */
export function unknownModel(name: string): UserError {
  if (catalogEntry(name) !== undefined) {
    const remedy = `zinc model pull ${normalName(name)} downloads it`;
    return new UserError("model", `${name} is not downloaded yet`, remedy);
  }
  const known = [...openStore().list(), ...catalog].map((model) => model.name);
  const remedy = suggestion(normalName(name), known) ?? "zinc model list shows the names";
  return new UserError("model", `there is no model or file ${name}`, remedy);
}
