/**
 * Calls between tags such as `<tool_call>` and `</tool_call>`. What stands between them tells its
 * own syntax: JSON, the functions and parameters of Qwen's coders, or the keys and values of GLM.
 */
import type { CallParser, Calls } from "./call.ts";
import { Malformed, type Reading } from "./input.ts";
import { readArguments, readCallList, readJsonCall } from "./json-call.ts";
import { ObjectWriter } from "./object-writer.ts";

export const functionTag = "<function=";
export const keyTag = "<arg_key>";

/** With `isKeyed`, a name alone is a call, too: GLM's way for functions without parameters. */
export function taggedCalls(close: string, isKeyed: boolean): CallParser {
  return function* (calls) {
    const starts = ["{", "[", functionTag, keyTag, close];
    for (let isFirst = true; ; isFirst = false) {
      const [head, start] = yield* readHead(calls, starts, isFirst && isKeyed);
      if (head !== "") return yield* readKeyedCall(calls, head, start, close);
      if (start === close && !isFirst) return;
      if (start === functionTag) yield* readFunction(calls);
      else if (start === "{" || start === "[") {
        calls.input.back(start);
        if (start === "{") yield* readJsonCall(calls);
        else yield* readCallList(calls, readJsonCall);
      } else throw new Malformed("no call");
    }
  };
}

/** A function without tags around it, which coders forget at times. */
export function* bareFunction(calls: Calls): Reading {
  yield* readFunction(calls);
  yield* calls.input.skipSpace();
  yield* calls.input.at(["</tool_call>"]);
}

/** White space, or a name where there may be one, and what stands behind it. */
export function* readHead(
  { input }: Calls,
  starts: readonly string[],
  isNamed: boolean,
): Reading<[head: string, start: string | undefined]> {
  let head = "";
  const allowed = isNamed ? /^\s*[\w.:/-]{0,256}\s*$/ : /^\s*$/;
  const start = yield* input.until(starts, (text) => {
    head += text;
    if (!allowed.test(head)) throw new Malformed("no call");
  });
  return [head.trim(), start];
}

/** `<function=` was read: `get_weather>`, parameters, `</function>`. */
function* readFunction(calls: Calls): Reading {
  const { input } = calls;
  const name = yield* readName(calls, ">");
  calls.begin(name);
  const writer = new ObjectWriter(calls);
  for (;;) {
    const [, start] = yield* readHead(calls, ["<parameter=", "</function>", "{"], false);
    if (start === "</function>") break;
    if (start === "{") {
      input.back(start);
      yield* readArguments(input, (text) => calls.arguments(text));
      yield* readHead(calls, ["</function>"], false);
      return calls.end();
    }
    if (start === undefined) throw new Malformed("the function does not end");
    const key = yield* readName(calls, ">");
    yield* input.at(["\n"]);
    yield* readValue(calls, writer, name, key, ["\n</parameter>", "</parameter>"]);
  }
  writer.end();
  calls.end();
}

/** The name and what stood behind it were read: `<arg_key>`, or the end of the call. */
function* readKeyedCall(
  calls: Calls,
  name: string,
  start: string | undefined,
  close: string,
): Reading {
  if (start !== keyTag && start !== close) throw new Malformed("no call");
  calls.begin(name);
  const writer = new ObjectWriter(calls);
  for (let next: string | undefined = start; next !== close;) {
    const key = yield* readName(calls, "</arg_key>");
    yield* readHead(calls, ["<arg_value>"], false);
    yield* readValue(calls, writer, name, key, ["</arg_value>"]);
    [, next] = yield* readHead(calls, [keyTag, close], false);
    if (next === undefined) throw new Malformed("the call does not end");
  }
  writer.end();
  calls.end();
}

/** On one line, up to its end. */
export function* readName({ input }: Calls, end: string): Reading<string> {
  let name = "";
  const found = yield* input.until([end], (text) => {
    name += text;
    if (/[\r\n]/.test(name.trim()) || name.length > 1024) throw new Malformed("no name");
  });
  if (found === undefined || name.trim() === "") throw new Malformed("no name");
  return name.trim();
}

/** A value that stands there without quotes, up to the first of the ends. */
export function* readValue(
  { input, tools }: Calls,
  writer: ObjectWriter,
  tool: string,
  key: string,
  ends: readonly string[],
  isText = tools.takesTextAlone(tool, key),
): Reading {
  writer.key(key);
  let text = "";
  if (isText) writer.quote();
  const end = yield* input.until(ends, (piece) => {
    if (isText) writer.text(piece);
    else text += piece;
  });
  if (end === undefined) throw new Malformed("the value does not end");
  if (isText) writer.quote();
  else writer.json(tools.valueOf(tool, key, text));
}
