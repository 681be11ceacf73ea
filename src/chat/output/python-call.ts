/** Calls as Python: `[get_weather(city="Paris", days=3)]`. Arguments come out as JSON. */
import type { Calls } from "./call.ts";
import { Malformed, type AnswerInput, type Reading } from "./input.ts";
import { escaped, jsonLiteral, readUnit, readWord } from "./json-value.ts";
import { readCallList } from "./json-call.ts";
import { ObjectWriter } from "./object-writer.ts";

const depthMax = 100;
const nameUnit = /[\w.]/;

/** In brackets with commas between, or a single one without. */
export function* readPythonCalls(calls: Calls): Reading {
  const first = yield* calls.input.skipSpace();
  if (first === "[") yield* readCallList(calls, readPythonCall);
  else yield* readPythonCall(calls);
}

function* readPythonCall(calls: Calls): Reading {
  const { input } = calls;
  const name = yield* readWord(input, nameUnit);
  yield* input.expect("(");
  // Llama's own tools are objects: brave_search.call(query="…").
  calls.begin(name.replace(/\.call$/, ""));
  const writer = new ObjectWriter(calls);
  if ((yield* input.skipSpace()) !== ")") {
    do {
      yield* input.skipSpace();
      writer.key(yield* readKeyword(input));
      yield* readPython(input, (text) => writer.json(text));
      yield* input.skipSpace();
    } while ((yield* input.at([","])) !== undefined);
  }
  yield* input.expect(")");
  writer.end();
  calls.end();
}

/** `city = `; arguments without a name belong to nothing. */
function* readKeyword(input: AnswerInput): Reading<string> {
  const name = yield* readWord(input, /\w/);
  if (!/^[^\d]/.test(name)) throw new Malformed("no keyword");
  yield* input.skipSpace();
  yield* input.expect("=");
  yield* input.skipSpace();
  return name;
}

/** A literal, as JSON. */
function* readPython(input: AnswerInput, emit: (text: string) => void, depth = 0): Reading {
  if (depth > depthMax) throw new Malformed("nested too deeply");
  const first = yield* input.peek();
  if (first === '"' || first === "'") return yield* readQuoted(input, emit);
  const item = () => readPython(input, emit, depth + 1);
  if (first === "[") return yield* readItems(input, emit, "[]", "[]", item);
  if (first === "(") return yield* readItems(input, emit, "()", "[]", item);
  if (first === "{") {
    return yield* readItems(input, emit, "{}", "{}", function* () {
      yield* readQuoted(input, emit);
      yield* input.skipSpace();
      yield* input.expect(":");
      emit(": ");
      yield* input.skipSpace();
      yield* item();
    });
  }
  emit(toJson(yield* readWord(input, /[\w.+-]/)));
}

/** Items in brackets, which JSON may write otherwise; a comma may stand behind the last. */
function* readItems(
  input: AnswerInput,
  emit: (text: string) => void,
  [open = "", close = ""]: string,
  [jsonOpen = "", jsonClose = ""]: string,
  readItem: () => Reading,
): Reading {
  yield* input.expect(open);
  emit(jsonOpen);
  for (let count = 0; (yield* input.skipSpace()) !== close; count++) {
    if (count > 0) emit(", ");
    yield* readItem();
    yield* input.skipSpace();
    if ((yield* input.at([","])) === undefined) break;
  }
  yield* input.expect(close);
  emit(jsonClose);
}

const escapes: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  "0": "\0",
  "\n": "",
};
const codeLengths: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** A string in quotes of either kind. */
function* readQuoted(input: AnswerInput, emit: (text: string) => void): Reading {
  const quote = yield* readUnit(input);
  if (quote !== '"' && quote !== "'") throw new Malformed("no string");
  emit('"');
  for (;;) {
    const unit = yield* readUnit(input);
    if (unit === quote) break;
    emit(escaped(unit === "\\" ? yield* readEscape(input) : unit));
  }
  emit('"');
}

/** What a backslash and what is behind it mean; those without meaning stay as they are. */
function* readEscape(input: AnswerInput): Reading<string> {
  const unit = yield* readUnit(input);
  const length = codeLengths[unit];
  if (length === undefined) {
    return "\\'\"".includes(unit) ? unit : (escapes[unit] ?? `\\${unit}`);
  }
  let digits = "";
  while (digits.length < length) digits += yield* readUnit(input);
  const code = /^[0-9a-fA-F]+$/.test(digits) ? Number.parseInt(digits, 16) : Number.NaN;
  if (!(code <= 0x10_ffff)) throw new Malformed("no such character");
  return String.fromCodePoint(code);
}

function toJson(word: string): string {
  const json = { True: "true", False: "false", None: "null" }[word] ?? word;
  if (jsonLiteral.test(json)) return json;
  // +5, .5 and 5. are numbers, too.
  if (!/^[+-]?(?:\d+\.?|\d*\.\d+)(?:[eE][+-]?\d+)?$/.test(word)) throw new Malformed("no value");
  return JSON.stringify(Number(word));
}
