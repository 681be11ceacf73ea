/** Calls of Llama 3: JSON without a mark, or behind `<|python_tag|>`, with semicolons between. */
import type { Calls } from "./call.ts";
import type { Reading } from "./input.ts";
import { readJsonCall } from "./json-call.ts";
import { readPythonCalls } from "./python-call.ts";

/** An object is no call unless it names a tool that was offered: an answer may well be JSON. */
export function* readPlainCalls(calls: Calls): Reading {
  const { input, tools } = calls;
  do {
    yield* input.skipSpace();
    yield* readJsonCall(calls, (name) => tools.has(name));
    yield* input.skipSpace();
  } while ((yield* input.at([";"])) !== undefined || (yield* input.peek()) === "{");
}

/** Behind the tag. Code for Llama's own interpreter is no call; it stays text. */
export function* readTaggedPlainCalls(calls: Calls): Reading {
  const { input } = calls;
  if ((yield* input.skipSpace()) !== "{") return yield* readPythonCalls(calls);
  do {
    yield* input.skipSpace();
    yield* readJsonCall(calls);
    yield* input.skipSpace();
  } while ((yield* input.at([";"])) !== undefined);
}
