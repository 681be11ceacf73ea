/** Calls whose name is the key, as Apertus has them: `[{"get_weather": {"city": "Paris"}}]`. */
import type { Calls } from "./call.ts";
import type { Reading } from "./input.ts";
import { readArguments, readCallList } from "./json-call.ts";
import { readText } from "./json-value.ts";
import { readHead } from "./tagged-call.ts";

export function namedCalls(close: string) {
  return function* (calls: Calls): Reading {
    yield* calls.input.skipSpace();
    yield* readCallList(calls, readNamedCall);
    yield* readHead(calls, [close], false);
  };
}

function* readNamedCall(calls: Calls): Reading {
  const { input } = calls;
  yield* input.expect("{");
  yield* input.skipSpace();
  calls.begin(yield* readText(input));
  yield* input.skipSpace();
  yield* input.expect(":");
  yield* input.skipSpace();
  yield* readArguments(input, (text) => calls.arguments(text));
  yield* input.skipSpace();
  yield* input.expect("}");
  calls.end();
}
