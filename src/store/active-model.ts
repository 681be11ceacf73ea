/** The model that is used where none is named: one line in the user's configuration. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import * as v from "valibot";
import { UserError } from "../errors.ts";
import { cannotWrite } from "./part-file.ts";

const fileName = "config.json";

/** Other keys are kept as they are. */
const schema = v.looseObject({ model: v.optional(v.string()) });

/** Its name; undefined if none was chosen. Throws a "failed" error if the file is damaged. */
export function readActive(configFolder: string | undefined): string | undefined {
  return configFolder === undefined ? undefined : readConfig(join(configFolder, fileName)).model;
}

/** Undefined goes back to the model inside zinc. */
export function writeActive(configFolder: string, name: string | undefined): void {
  const path = join(configFolder, fileName);
  const { model: _before, ...others } = readConfig(path);
  const config = name === undefined ? others : { ...others, model: name };
  const temporary = `${path}.${process.pid}`;
  try {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(temporary, `${JSON.stringify(config, null, 2)}\n`);
    renameSync(temporary, path);
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

function readConfig(path: string): v.InferOutput<typeof schema> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return {};
    throw new UserError("failed", `${path} cannot be read`, "make it readable, or remove it");
  }
  try {
    return v.parse(schema, JSON.parse(text));
  } catch (cause) {
    const remedy = 'write {"model": "name"}, or remove the file';
    throw new UserError("failed", `${path} is no configuration`, remedy, { cause });
  }
}
