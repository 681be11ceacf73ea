/** The real chat templates beside the repository, with what Python's Jinja makes of them. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TemplateInput } from "../../src/chat/template-input.ts";

export interface SharedTemplate {
  readonly name: string;
  readonly source: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly now: () => Date;
  readonly cases: readonly SharedCase[];
}

export interface SharedCase {
  readonly name: string;
  readonly input: TemplateInput;
  /** Undefined where Python gives an error. */
  readonly output: string | undefined;
}

interface File {
  readonly bos_token: string;
  readonly eos_token: string;
  readonly now: string;
  readonly template: string;
  readonly cases: Readonly<Record<string, { input: TemplateInput; output?: string }>>;
}

/** All of them, none if the folder is absent. */
export function sharedTemplates(): SharedTemplate[] {
  const folder = join(import.meta.dir, "../../../shared/vectors/templates");
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
  return files.sort().map((name) => {
    const file = JSON.parse(readFileSync(join(folder, name), "utf8")) as File;
    return {
      name: name.replace(/\.json$/, ""),
      source: file.template,
      variables: { bos_token: file.bos_token, eos_token: file.eos_token },
      now: () => new Date(file.now),
      cases: Object.entries(file.cases).map(([label, { input, output }]) => ({
        name: label,
        input,
        output,
      })),
    };
  });
}
