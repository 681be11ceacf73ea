/** What the end of a prompt has begun of the answer. */
import type { OutputFormat, Pair } from "./format.ts";
import { harmonyMarks } from "./harmony.ts";

export interface AnswerStart {
  /** The thought that it has opened. */
  readonly thought?: Pair;
  /** It holds the whole thought, or an empty one: the model is not to think. */
  readonly isThoughtClosed: boolean;
  /** The header of the first message, where answers consist of messages. */
  readonly header: string;
}

/** The prompt has begun nothing. */
export const freshStart: AnswerStart = { isThoughtClosed: false, header: "" };

interface Segment {
  readonly text: string;
  readonly special: boolean;
}

/**
 * How the answer begins behind a prompt. Only what the template wrote at its end counts: a user
 * whose message ends with `<think>` opens nothing.
 */
export function answerStart(format: OutputFormat, prompt: readonly Segment[]): AnswerStart {
  const isUser = ({ text, special }: Segment) => !special && text !== "";
  const tail = prompt
    .slice(prompt.findLastIndex(isUser) + 1)
    .map(({ text }) => text)
    .join("")
    .trimEnd();
  if (format.isHarmony) {
    const header = tail.split(harmonyMarks.start).at(-1) ?? "";
    return { isThoughtClosed: false, header };
  }
  const thought = format.thoughts.find(
    ({ open, label = "" }) => tail.endsWith(open) || (label !== "" && tail.endsWith(open + label)),
  );
  if (thought !== undefined) return { thought, isThoughtClosed: false, header: "" };
  return {
    isThoughtClosed: format.thoughts.some(({ close }) => tail.endsWith(close)),
    header: "",
  };
}
