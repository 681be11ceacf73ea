/**
 * The answers of gpt-oss, which are messages with a channel each: thoughts in "analysis", calls in
 * "commentary", the answer in "final".
 *
 *     <|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…
 */
import type { Calls } from "./call.ts";
import type { Reading } from "./input.ts";
import { readArguments } from "./json-call.ts";

export const harmonyMarks = {
  start: "<|start|>",
  channel: "<|channel|>",
  constrain: "<|constrain|>",
  message: "<|message|>",
  end: "<|end|>",
  call: "<|call|>",
  answered: "<|return|>",
} as const;

const { start, message } = harmonyMarks;
const ends = [harmonyMarks.end, harmonyMarks.call, harmonyMarks.answered, start];

/** `begun` is what the prompt has of the first header, behind `<|start|>`. */
export function* readHarmony(calls: Calls, begun: string): Reading {
  for (let before = begun; ; before = "") {
    calls.out.paragraph();
    const header = before.endsWith(message) ? "" : yield* readHeader(calls, before);
    if (header === undefined) return;
    if ((yield* readMessage(calls, before, header)) === undefined) return;
  }
}

/** What is missing of a header; undefined if the answer ends before its message. */
function* readHeader({ input, out }: Calls, before: string): Reading<string | undefined> {
  for (let begun = before; ; begun = "") {
    let header = "";
    const mark = yield* input.until([message, ...ends], (text) => (header += text), "kept");
    if (mark === message) return header;
    // Half a header is nobody's text, unless a call would be lost. Others have forgotten theirs.
    const isHeader = /^\s*(?:assistant|<\|channel\|>)/.test(begun + header);
    const isText = header.trim() !== "" && (!isHeader || header.includes("to="));
    const isForgotten = begun !== "" && !/^\s*(?:<\||to=)/.test(header);
    if (isText || isForgotten) out.plain(header);
    if (mark === undefined) return undefined;
  }
}

/** Returns the mark behind it. */
function* readMessage(calls: Calls, before: string, header: string): Reading<string | undefined> {
  const { input, out } = calls;
  const recipient = /\bto=(?:functions\.)?([^\s<]+)/.exec(before + header)?.[1];
  const isThought = /<\|channel\|>\s*analysis\b/.test(before + header);
  if (recipient !== undefined) {
    yield* calls.attempt(header + message, function* () {
      calls.begin(recipient);
      yield* input.skipSpace();
      yield* readArguments(input, (text) => calls.arguments(text));
      calls.end();
    });
  }
  const isReasoning = isThought && recipient === undefined;
  return yield* input.until(ends, (text) => (isReasoning ? out.reasoning(text) : out.text(text)));
}
