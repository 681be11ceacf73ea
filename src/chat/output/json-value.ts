/** Reads a JSON value, and hands its text over as it comes. */
import { isSpace, Malformed, type AnswerInput, type Reading } from "./input.ts";

/** Deeper than any arguments, and far from the depth at which generators get slow. */
const depthMax = 100;

/** Words and numbers. */
export const jsonLiteral = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/** What comes out is JSON: bare line ends in strings, which models write, are escaped. */
export function* readJson(input: AnswerInput, emit: (text: string) => void, depth = 0): Reading {
  if (depth > depthMax) throw new Malformed("nested too deeply");
  const first = yield* input.peek();
  if (first === "{") yield* readMembers(input, emit, depth);
  else if (first === "[") yield* readItems(input, emit, depth);
  else if (first === '"') yield* readString(input, emit);
  else emit(yield* readLiteral(input));
}

/** A string, whose value is returned. */
export function* readText(input: AnswerInput): Reading<string> {
  let json = "";
  yield* readString(input, (text) => (json += text));
  return JSON.parse(json) as string;
}

function* readMembers(input: AnswerInput, emit: (text: string) => void, depth: number): Reading {
  yield* readList(input, emit, ["{", "}"], function* () {
    yield* readString(input, emit);
    yield* copySpace(input, emit);
    yield* input.expect(":");
    emit(":");
    yield* copySpace(input, emit);
    yield* readJson(input, emit, depth + 1);
  });
}

function* readItems(input: AnswerInput, emit: (text: string) => void, depth: number): Reading {
  yield* readList(input, emit, ["[", "]"], () => readJson(input, emit, depth + 1));
}

/** Items with commas between, in brackets. */
function* readList(
  input: AnswerInput,
  emit: (text: string) => void,
  [open, close]: readonly [string, string],
  readItem: () => Reading,
): Reading {
  yield* input.expect(open);
  emit(open);
  for (let isFirst = true; ; isFirst = false) {
    const unit = yield* copySpace(input, emit);
    if (isFirst && unit === close) break;
    yield* readItem();
    const behind = yield* copySpace(input, emit);
    if (behind !== ",") break;
    yield* input.next();
    emit(",");
  }
  yield* input.expect(close);
  emit(close);
}

function* readString(input: AnswerInput, emit: (text: string) => void): Reading {
  yield* input.expect('"');
  emit('"');
  for (;;) {
    const unit = yield* readUnit(input);
    emit(unit === "\\" ? unit + (yield* readEscape(input)) : unit === '"' ? unit : escaped(unit));
    if (unit === '"') return;
  }
}

/** What stands behind a backslash. */
function* readEscape(input: AnswerInput): Reading<string> {
  const unit = yield* readUnit(input);
  if (unit !== "u") {
    if (unit.length === 1 && '"\\/bfnrt'.includes(unit)) return unit;
    throw new Malformed("no such escape");
  }
  let digits = "";
  while (digits.length < 4) digits += yield* readUnit(input);
  if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw new Malformed("no such escape");
  return unit + digits;
}

/** A unit of a string: also a mark, if it is one that is shown. */
export function* readUnit(input: AnswerInput): Reading<string> {
  const unit = yield* input.next();
  if (unit === undefined || (unit.length > 1 && input.isHidden(unit))) {
    throw new Malformed("the string does not end");
  }
  return unit;
}

function* readLiteral(input: AnswerInput): Reading<string> {
  const text = yield* readWord(input, /[\w.+-]/);
  if (jsonLiteral.test(text)) return text;
  throw new Malformed("no value");
}

/** The longest run of characters that match. */
export function* readWord(input: AnswerInput, pattern: RegExp): Reading<string> {
  for (let text = ""; ;) {
    const unit = yield* input.peek();
    if (unit === undefined || unit.length > 1 || !pattern.test(unit)) return text;
    text += unit;
    yield* input.next();
  }
}

function* copySpace(input: AnswerInput, emit: (text: string) => void): Reading<string | undefined> {
  for (;;) {
    const unit = yield* input.peek();
    if (unit === undefined || !isSpace(unit)) return unit;
    yield* input.next();
    emit(unit);
  }
}

/** Text as it stands inside of a JSON string. */
export function escaped(text: string): string {
  return text.replace(/["\\\u0000-\u001f]/g, (unit) => JSON.stringify(unit).slice(1, -1));
}
