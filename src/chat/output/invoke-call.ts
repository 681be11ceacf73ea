/**
 * Calls as DeepSeek and MiniMax write them: `<invoke name="get_weather">` with
 * `<parameter name="city">Paris</parameter>` inside.
 */
import type { CallParser, Calls } from "./call.ts";
import { Malformed, type Reading } from "./input.ts";
import { ObjectWriter } from "./object-writer.ts";
import { readHead, readValue } from "./tagged-call.ts";

/** `prefix` stands before every name of a tag. */
export function invokedCalls(close: string, prefix = ""): CallParser {
  return function* (calls) {
    for (let isFirst = true; ; isFirst = false) {
      const [, start] = yield* readHead(calls, [`<${prefix}invoke`, close], false);
      if (start === close && !isFirst) return;
      if (start !== `<${prefix}invoke`) throw new Malformed("no call");
      yield* readInvoke(calls, prefix);
    }
  };
}

function* readInvoke(calls: Calls, prefix: string): Reading {
  const { name } = yield* readAttributes(calls);
  if (name === undefined) throw new Malformed("no name");
  calls.begin(name);
  const writer = new ObjectWriter(calls);
  const [open, close] = [`<${prefix}parameter`, `</${prefix}invoke>`];
  for (;;) {
    const [, start] = yield* readHead(calls, [open, close], false);
    if (start === close) break;
    if (start === undefined) throw new Malformed("the call does not end");
    const { name: key, string } = yield* readAttributes(calls);
    if (key === undefined) throw new Malformed("no name");
    const isText = string === undefined ? undefined : string === "true";
    yield* readValue(calls, writer, name, key, [`</${prefix}parameter>`], isText);
  }
  writer.end();
  calls.end();
}

/** ` name="city" string="true">` */
function* readAttributes({ input }: Calls): Reading<Readonly<Record<string, string>>> {
  let text = "";
  const end = yield* input.until([">"], (piece) => {
    text += piece;
    if (!/^[^<>\n]{0,1024}$/.test(text)) throw new Malformed("no attributes");
  });
  if (end === undefined) throw new Malformed("the tag does not end");
  return Object.fromEntries(
    Array.from(text.matchAll(/([\w-]+)="([^"]*)"/g), ([, key = "", value = ""]) => [key, value]),
  );
}
