/** The functions that a model may call, from a JSON file. */
import * as v from "valibot";
import { UserError } from "../errors.ts";
import { readTextFile } from "./input.ts";

const definition = v.looseObject({ name: v.pipe(v.string(), v.nonEmpty()) });
const tool = v.union([
  v.looseObject({ type: v.literal("function"), function: definition }),
  v.pipe(
    definition,
    v.transform((bare) => ({ type: "function" as const, function: bare })),
  ),
]);
const list = v.array(tool);

/**
 * A list in the shape of OpenAI's API, or of what stands there under "function" alone. Throws a
 * "usage" error that names the file.
 */
export async function readTools(path: string): Promise<readonly unknown[]> {
  const text = await readTextFile(path);
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(), list), text);
  if (result.success) return result.output;
  throw new UserError(
    "usage",
    `${path} holds no list of tools`,
    'write [{"name": "get_time", "description": "…", "parameters": {"type": "object"}}]',
  );
}
