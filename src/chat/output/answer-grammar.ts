/** The grammar of an answer: thoughts, text and calls, told apart by marks. */
import type { AnswerStart } from "./answer-start.ts";
import type { Calls } from "./call.ts";
import type { OutputFormat, Pair } from "./format.ts";
import { readHarmony } from "./harmony.ts";
import { isSpace, type Reading } from "./input.ts";
import { readPlainCalls } from "./plain-call.ts";

/** Returns at the end of the answer, which is not always the end of what the model writes. */
export function* readAnswer(
  calls: Calls,
  format: OutputFormat,
  start: AnswerStart,
  takesCalls: boolean,
): Reading {
  const { input, out } = calls;
  if (format.isHarmony) return yield* readHarmony(calls, start.header);
  if (start.thought !== undefined) yield* readThought(calls, start.thought);
  const syntaxes = takesCalls ? format.calls : [];
  const wrappers = yield* readOpening(calls, format, start.isThoughtClosed);
  if (takesCalls && format.hasPlainCalls && !calls.tools.isEmpty) {
    if ((yield* input.peek()) === "{") yield* calls.attempt("", readPlainCalls);
  }
  // Text may quote a mark. It cannot quote one that the tokenizer never makes of text.
  const thoughts = format.thoughts.filter(({ open }) => input.isHidden(open));
  const marks = [
    ...syntaxes.map(({ open }) => open),
    ...thoughts.map(({ open }) => open),
    ...wrappers.map(({ close }) => close),
    ...format.wrappers.flatMap((pair) => [pair.open, pair.close]).filter((m) => input.isHidden(m)),
  ];
  for (;;) {
    const mark = yield* input.until(marks, (text) => out.text(text));
    if (mark === undefined) return;
    const syntax = syntaxes.find(({ open }) => open === mark);
    const thought = thoughts.find(({ open }) => open === mark);
    if (syntax !== undefined) {
      const isWhole = yield* calls.attempt(mark, syntax.parse, syntax.marks);
      if (isWhole && syntax.endsAnswer === true) return;
    } else {
      out.mark();
      if (thought !== undefined) yield* readThought(calls, thought);
    }
  }
}

/** What stands before the text: thoughts, and marks that open the answer; those are returned. */
function* readOpening(
  calls: Calls,
  format: OutputFormat,
  isThoughtClosed: boolean,
): Reading<readonly Pair[]> {
  const { input, out } = calls;
  const wrappers: Pair[] = [];
  const thoughts = isThoughtClosed ? [] : format.thoughts;
  const pairs = [...thoughts, ...format.wrappers];
  const opens = pairs.map(({ open }) => open);
  for (;;) {
    for (let unit = yield* input.peek(); unit !== undefined && isSpace(unit);) {
      out.text(unit);
      yield* input.next();
      unit = yield* input.peek();
    }
    const mark = yield* input.at(opens);
    const pair = pairs.find(({ open }) => open === mark);
    if (pair === undefined) return wrappers;
    out.mark();
    if (format.wrappers.includes(pair)) wrappers.push(pair);
    else yield* readThought(calls, pair);
  }
}

/** A thought up to its end, or to that of the answer; the mark that opens it was read. */
function* readThought({ input, out }: Calls, { open, close, label }: Pair): Reading {
  out.mark();
  // Models begin anew what the prompt has begun already.
  while (isSpace((yield* input.peek()) ?? "")) out.reasoning((yield* input.next()) ?? "");
  yield* input.at([open]);
  if (label !== undefined) yield* input.at([label]);
  yield* input.until([close], (text) => out.reasoning(text));
  out.mark();
}
