/** What an answer must look like, as flags say it. */
import { requireShape } from "../chat/shape/grammars.ts";
import { UserError } from "../errors.ts";
import type { AnswerFormat } from "../index.ts";
import type { Values } from "./flag.ts";
import type { shapeFlags } from "./flags.ts";
import { readTextFile } from "./input.ts";

/** Throws a "usage" error for a grammar or schema that cannot be enforced. */
export async function readFormat(
  values: Values<typeof shapeFlags>,
): Promise<AnswerFormat | undefined> {
  const { grammar, grammarFile, jsonSchema } = values;
  const given = Object.entries({
    "--grammar": grammar,
    "--grammar-file": grammarFile,
    "--json-schema": jsonSchema,
  }).flatMap(([flag, value]) => (value === undefined ? [] : [flag]));
  if (given.length > 1) {
    throw new UserError("usage", `${given.join(" and ")} exclude each other`, "give one of them");
  }
  const format = await formatOf(values);
  if (format !== undefined) requireShape(format);
  return format;
}

async function formatOf({
  grammar,
  grammarFile,
  jsonSchema,
}: Values<typeof shapeFlags>): Promise<AnswerFormat | undefined> {
  if (grammar !== undefined) return { type: "grammar", grammar };
  if (grammarFile !== undefined) {
    return { type: "grammar", grammar: await readTextFile(grammarFile) };
  }
  if (jsonSchema === undefined) return undefined;
  const isText = jsonSchema.trimStart().startsWith("{");
  const text = isText ? jsonSchema : await readTextFile(jsonSchema);
  try {
    return { type: "schema", schema: JSON.parse(text) as unknown };
  } catch {
    const what = isText ? "--json-schema" : jsonSchema;
    throw new UserError("usage", `${what} is no JSON`, 'write {"type": "object", …}, or a file');
  }
}
