/** Conversations in files, as JSON in the shape of OpenAI's API: `{"messages": […]}`. */
import { writeFileSync } from "node:fs";
import * as v from "valibot";
import type { ChatMessage } from "../../index.ts";
import { UserError } from "../../errors.ts";
import { readTextFile } from "../input.ts";
import { errorCode } from "../output.ts";

const message = v.looseObject({
  role: v.picklist(["system", "developer", "user", "assistant", "tool"]),
  content: v.optional(v.nullable(v.string())),
  reasoning_content: v.optional(v.string()),
  tool_calls: v.optional(
    v.array(
      v.looseObject({
        id: v.string(),
        function: v.looseObject({ name: v.string(), arguments: v.string() }),
      }),
    ),
  ),
});
const transcript = v.union([
  v.pipe(
    v.looseObject({ messages: v.array(message) }),
    v.transform(({ messages }) => messages),
  ),
  v.array(message),
]);

/** Throws a "usage" error if the file cannot be written. */
export function saveTranscript(path: string, messages: readonly ChatMessage[]): void {
  try {
    writeFileSync(path, `${JSON.stringify({ messages }, null, 2)}\n`);
  } catch (error) {
    const problem = `${path} cannot be written (${errorCode(error)})`;
    throw new UserError("usage", problem, "check the path");
  }
}

/** Throws a "usage" error if the file cannot be read or holds no conversation. */
export async function loadTranscript(path: string): Promise<readonly ChatMessage[]> {
  const text = await readTextFile(path);
  const result = v.safeParse(v.pipe(v.string(), v.parseJson(), transcript), text);
  if (result.success) return result.output as ChatMessage[];
  throw new UserError(
    "usage",
    `${path} holds no conversation`,
    'write {"messages": [{"role": "user", "content": "Hello"}]}',
  );
}
