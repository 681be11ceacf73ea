/** Calls as JSON: `{"name": "get_weather", "arguments": {"city": "Paris"}}`. */
import type { Calls } from "./call.ts";
import { Malformed, type AnswerInput, type Reading } from "./input.ts";
import { readJson, readText } from "./json-value.ts";

/** What families call the parts; a "function" may also hold them. */
const nameKeys = ["name", "tool_name", "function"];
const argumentKeys = ["arguments", "parameters"];

/** A call as far as it was read. */
interface Draft {
  name?: string;
  /** Arguments that came before the name. */
  early?: string;
  isBegun: boolean;
}

/** One object. `isExpected` tells which names are believed. */
export function* readJsonCall(calls: Calls, isExpected?: (name: string) => boolean): Reading {
  const draft: Draft = { isBegun: false };
  yield* readMembers(calls, draft, isExpected);
  if (draft.name === undefined) throw new Malformed("a call without name");
  if (!draft.isBegun) {
    calls.begin(draft.name);
    calls.arguments(draft.early ?? "{}");
  }
  calls.end();
}

/** Calls in brackets, with commas between. */
export function* readCallList(calls: Calls, readCall: (calls: Calls) => Reading): Reading {
  const { input } = calls;
  yield* input.expect("[");
  if ((yield* input.skipSpace()) !== "]") {
    do {
      yield* input.skipSpace();
      yield* readCall(calls);
      yield* input.skipSpace();
    } while ((yield* input.at([","])) !== undefined);
  }
  yield* input.expect("]");
}

/** The value of "arguments": an object, JSON of one in a string, or null. */
export function* readArguments(input: AnswerInput, emit: (text: string) => void): Reading {
  const first = yield* input.peek();
  if (first === "{") return yield* readJson(input, emit);
  if (first === '"') {
    const text = yield* readText(input);
    if (!isObject(text)) throw new Malformed("arguments that are no object");
    return emit(text.trim());
  }
  yield* input.expect("null");
  emit("{}");
}

function* readMembers(calls: Calls, draft: Draft, isExpected?: (name: string) => boolean): Reading {
  const { input } = calls;
  yield* input.expect("{");
  do {
    yield* input.skipSpace();
    const key = yield* readText(input);
    yield* input.skipSpace();
    yield* input.expect(":");
    const first = yield* input.skipSpace();
    if (nameKeys.includes(key) && first === '"') {
      if (draft.name !== undefined) throw new Malformed("two names");
      draft.name = yield* readText(input);
      if (isExpected?.(draft.name) === false) throw new Malformed("no such tool");
    } else if (key === "function" && first === "{") {
      yield* readMembers(calls, draft, isExpected);
    } else if (argumentKeys.includes(key)) {
      yield* readDraftArguments(calls, draft);
    } else {
      yield* readJson(input, () => {});
    }
    yield* input.skipSpace();
  } while ((yield* input.at([","])) !== undefined);
  yield* input.expect("}");
}

function* readDraftArguments(calls: Calls, draft: Draft): Reading {
  if (draft.isBegun || draft.early !== undefined) throw new Malformed("arguments twice");
  if (draft.name === undefined) {
    let text = "";
    yield* readArguments(calls.input, (piece) => (text += piece));
    draft.early = text;
    return;
  }
  calls.begin(draft.name);
  draft.isBegun = true;
  yield* readArguments(calls.input, (text) => calls.arguments(text));
}

function isObject(json: string): boolean {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
