/** What is written down beside a model: where it comes from, and what was checked. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { cannotWrite } from "./part-file.ts";

const fileName = "model.json";

const schema = v.object({
  source: v.string(),
  added: v.string(),
  files: v.array(v.object({ name: v.string(), bytes: v.number(), sha256: v.optional(v.string()) })),
});

export type Manifest = v.InferOutput<typeof schema>;

/** Undefined if it is missing or damaged: the model beside it can be used all the same. */
export function readManifest(folder: string): Manifest | undefined {
  try {
    return v.parse(schema, JSON.parse(readFileSync(join(folder, fileName), "utf8")));
  } catch {
    return undefined;
  }
}

export function writeManifest(folder: string, manifest: Manifest): void {
  const path = join(folder, fileName);
  try {
    writeFileSync(path, `${JSON.stringify(manifest, null, 2)}\n`);
  } catch (error) {
    throw cannotWrite(path, error);
  }
}
