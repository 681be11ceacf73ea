/** Calls in a section of their own, in which every part has its mark: DeepSeek's and Kimi's. */
import type { Calls } from "./call.ts";
import { Malformed, type Reading } from "./input.ts";
import { readArguments } from "./json-call.ts";
import { readHead, readName } from "./tagged-call.ts";

export interface SectionMarks {
  readonly open: string;
  readonly close: string;
  readonly callOpen: string;
  /** Between the name and the arguments. */
  readonly between: string;
  readonly callClose: string;
}

export const deepseekMarks: SectionMarks = {
  open: "<｜tool▁calls▁begin｜>",
  close: "<｜tool▁calls▁end｜>",
  callOpen: "<｜tool▁call▁begin｜>",
  between: "<｜tool▁sep｜>",
  callClose: "<｜tool▁call▁end｜>",
};

export const kimiMarks: SectionMarks = {
  open: "<|tool_calls_section_begin|>",
  close: "<|tool_calls_section_end|>",
  callOpen: "<|tool_call_begin|>",
  between: "<|tool_call_argument_begin|>",
  callClose: "<|tool_call_end|>",
};

export function sectionedCalls({ close, callOpen, between, callClose }: SectionMarks) {
  return function* (calls: Calls): Reading {
    const { input } = calls;
    for (let isFirst = true; ; isFirst = false) {
      const [, start] = yield* readHead(calls, [callOpen, close], false);
      if (start === close && !isFirst) return;
      if (start !== callOpen) throw new Malformed("no call");
      const head = yield* readName(calls, between);
      const first = yield* input.skipSpace();
      // DeepSeek's older models: the head is "function", and name and fence are lines of their own.
      const isFenced = first !== "{";
      const name = isFenced ? yield* readName(calls, "```json") : nameOf(head);
      calls.begin(name, name === head ? undefined : idOf(head));
      yield* input.skipSpace();
      yield* readArguments(input, (text) => calls.arguments(text));
      yield* input.skipSpace();
      if (isFenced) yield* input.expect("```");
      yield* readHead(calls, [callClose], false);
      calls.end();
    }
  };
}

/** Kimi names a call "functions.get_weather:0", and wants its result under this id. */
function nameOf(head: string): string {
  return /^functions\.(.+):\d+$/.exec(head)?.[1] ?? head;
}

function idOf(head: string): string | undefined {
  return nameOf(head) === head ? undefined : head;
}
