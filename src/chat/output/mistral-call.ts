/**
 * Mistral's calls behind `[TOOL_CALLS]`: a list in JSON, or in newer models a name, perhaps an id,
 * and the arguments: `get_weather[ARGS]{"city": "Paris"}`.
 */
import type { Calls } from "./call.ts";
import { Malformed, type Reading } from "./input.ts";
import { readArguments, readCallList, readJsonCall } from "./json-call.ts";
import { readHead, readName } from "./tagged-call.ts";

export const mistralMarks = { call: "[TOOL_CALLS]", id: "[CALL_ID]", arguments: "[ARGS]" } as const;

export function* readMistralCalls(calls: Calls): Reading {
  const { input } = calls;
  const first = yield* input.skipSpace();
  if (first === "[") return yield* readCallList(calls, readJsonCall);
  if (first === "{") return yield* readJsonCall(calls);
  const { id: idMark, arguments: argumentsMark } = mistralMarks;
  const [name, start] = yield* readHead(calls, [idMark, argumentsMark, "{"], true);
  if (start === undefined) throw new Malformed("a call without arguments");
  const id = start === idMark ? yield* readName(calls, argumentsMark) : undefined;
  calls.begin(name, id);
  if (start === "{") input.back(start);
  yield* input.skipSpace();
  yield* readArguments(input, (text) => calls.arguments(text));
  calls.end();
}
