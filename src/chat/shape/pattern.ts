/**
 * Regular expressions as grammars of the characters in a JSON string. What JSON would have to
 * escape is never matched, so that no pattern can break out of its string.
 */
import { characterSet } from "./character-set.ts";

/** Not in a string as they are. */
const excluded = '"\\\\\\x00-\\x1f';

const sets: Readonly<Record<string, string>> = {
  ".": `[^${excluded}]`,
  "\\d": "[0-9]",
  "\\D": `[^0-9${excluded}]`,
  "\\w": "[A-Za-z0-9_]",
  "\\W": `[^A-Za-z0-9_${excluded}]`,
  "\\s": '" "',
  "\\S": `[^ ${excluded}]`,
};

const token = new RegExp(
  [
    "\\(\\?:|\\(|\\)|\\|",
    "[*+?]\\??",
    "\\{\\d{1,2}(?:,\\d{0,2})?\\}\\??",
    "\\[\\^?(?:\\\\.|[^\\]\\\\])+\\]",
    "\\\\.|[^\\\\]",
  ].join("|"),
  "suy",
);

/** The grammar, or undefined for what it cannot say. A pattern may match anywhere; this is all. */
export function patternGrammar(pattern: string): string | undefined {
  try {
    new RegExp(pattern, "u");
  } catch {
    return undefined;
  }
  const body = pattern.replace(/^\^/, "").replace(/(?<!\\)\$$/, "");
  const out: string[] = [];
  let isEmpty = true;
  for (const text of tokensOf(body)) {
    // Between bars and brackets there may be nothing.
    if (isEmpty && (text === undefined || text === "|" || text === ")")) out.push('""');
    if (text === undefined) return out.join(" ");
    const converted = convert(text);
    if (converted === undefined) return undefined;
    // "(?=": looking around.
    if (isQuantifier(text) && isEmpty) return undefined;
    if (isQuantifier(text)) out.push(`${out.pop()}${converted}`);
    else out.push(converted);
    isEmpty = text === "|" || text === "(" || text === "(?:";
  }
  return undefined;
}

/** The parts, and undefined behind the last of them. Less if it is not all made of parts. */
function* tokensOf(body: string): Generator<string | undefined> {
  token.lastIndex = 0;
  while (token.lastIndex < body.length) {
    const match = token.exec(body);
    if (match === null) return;
    yield match[0];
  }
  yield undefined;
}

function isQuantifier(text: string): boolean {
  return /^(?:[*+?]|\{\d)/.test(text);
}

function convert(text: string): string | undefined {
  if (text === "(?:") return "(";
  if (/^[()|]$/.test(text)) return text;
  // Taking little or much makes no difference for what can be made.
  if (isQuantifier(text)) return text.replace(/(?<=.)\?$/, "");
  if (text.startsWith("[")) return convertSet(text);
  const set = sets[text];
  if (set !== undefined) return set;
  const literal = text.startsWith("\\") ? text.slice(1) : text;
  if (text.startsWith("\\") && /[A-Za-z0-9]/.test(literal)) return undefined;
  return /^["\\^$\u0000-\u001f]$/.test(literal) && !text.startsWith("\\")
    ? undefined
    : quoted(literal);
}

/** Undefined for a character that a string has to escape. */
function quoted(literal: string): string | undefined {
  return /["\\\u0000-\u001f]/.test(literal) ? undefined : JSON.stringify(literal);
}

function listedSet(inner: string): string | undefined {
  const ranges = [...inner.matchAll(/\\?(.)(?:-\\?(.))?/gsu)].map(([, low = "", high = low]) => {
    const [first = 0, last = 0] = [low, high].map((character) => character.codePointAt(0));
    return [first, last] as const;
  });
  return characterSet(ranges);
}

function convertSet(text: string): string | undefined {
  const isNegated = text.startsWith("[^");
  const inner = text.slice(isNegated ? 2 : 1, -1);
  if (/["\u0000-\u001f]|\\[A-Za-ce-vx-z0-9"\\]/.test(inner)) return undefined;
  const expanded = inner.replace(/\\(.)/gsu, (_all, c: string) =>
    c === "d" ? "0-9" : c === "w" ? "A-Za-z0-9_" : /[\]^-]/.test(c) ? `\\${c}` : c,
  );
  // The engine knows ranges of ASCII alone.
  if (/[^\u0000-\u007f]/.test(expanded)) return isNegated ? undefined : listedSet(expanded);
  return isNegated ? `[^${expanded}${excluded}]` : `[${expanded}]`;
}
