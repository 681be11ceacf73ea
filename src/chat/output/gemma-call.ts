/** Gemma's calls: `call:get_weather{city:<|"|>Paris<|"|>,days:3}`. Arguments come out as JSON. */
import type { Calls } from "./call.ts";
import { Malformed, type AnswerInput, type Reading } from "./input.ts";
import { escaped, jsonLiteral, readWord } from "./json-value.ts";

export const gemmaQuote = '<|"|>';
const depthMax = 100;

export function gemmaCalls(close: string) {
  return function* (calls: Calls): Reading {
    const { input } = calls;
    yield* input.skipSpace();
    yield* input.expect("call:");
    calls.begin(yield* readWord(input, /[\w.:/-]/));
    yield* readObject(input, (text) => calls.arguments(text), 0);
    calls.end();
    yield* input.skipSpace();
    yield* input.at([close]);
  };
}

function* readValue(input: AnswerInput, emit: (text: string) => void, depth: number): Reading {
  if (depth > depthMax) throw new Malformed("nested too deeply");
  if ((yield* input.at([gemmaQuote])) !== undefined) return yield* readString(input, emit);
  const first = yield* input.peek();
  if (first === "{") return yield* readObject(input, emit, depth);
  if (first === "[") {
    return yield* readItems(input, emit, "[]", () => readValue(input, emit, depth + 1));
  }
  const word = yield* readWord(input, /[\w.+-]/);
  const json = word === "None" ? "null" : word;
  if (!jsonLiteral.test(json)) throw new Malformed("no value");
  emit(json);
}

function* readObject(input: AnswerInput, emit: (text: string) => void, depth: number): Reading {
  yield* readItems(input, emit, "{}", function* () {
    if ((yield* input.at([gemmaQuote])) !== undefined) yield* readString(input, emit);
    else emit(JSON.stringify((yield* readWord(input, /[^:,{}[\]\n]/)).trim()));
    yield* input.expect(":");
    emit(": ");
    yield* input.skipSpace();
    yield* readValue(input, emit, depth + 1);
  });
}

function* readItems(
  input: AnswerInput,
  emit: (text: string) => void,
  [open = "", close = ""]: string,
  readItem: () => Reading,
): Reading {
  yield* input.expect(open);
  emit(open);
  if ((yield* input.skipSpace()) !== close) {
    yield* readItem();
    yield* input.skipSpace();
    while ((yield* input.at([","])) !== undefined) {
      emit(", ");
      yield* input.skipSpace();
      yield* readItem();
      yield* input.skipSpace();
    }
  }
  yield* input.expect(close);
  emit(close);
}

/** The quote was read. */
function* readString(input: AnswerInput, emit: (text: string) => void): Reading {
  emit('"');
  const end = yield* input.until([gemmaQuote], (text) => emit(escaped(text)));
  if (end === undefined) throw new Malformed("the string does not end");
  emit('"');
}
