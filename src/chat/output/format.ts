/**
 * How the answers of a model are marked. That follows from its chat template, which shows answers
 * of earlier turns, and from its vocabulary, which holds the marks it was taught; never from its
 * name.
 */
import type { CallParser } from "./call.ts";
import { gemmaCalls, gemmaQuote } from "./gemma-call.ts";
import { harmonyMarks } from "./harmony.ts";
import { invokedCalls } from "./invoke-call.ts";
import { readCallList, readJsonCall } from "./json-call.ts";
import { mistralMarks, readMistralCalls } from "./mistral-call.ts";
import { namedCalls } from "./named-call.ts";
import { readTaggedPlainCalls } from "./plain-call.ts";
import { readPythonCalls } from "./python-call.ts";
import { deepseekMarks, kimiMarks, sectionedCalls, type SectionMarks } from "./sectioned-call.ts";
import { bareFunction, functionTag, keyTag, taggedCalls } from "./tagged-call.ts";

/** Two marks and what is between. */
export interface Pair {
  readonly open: string;
  readonly close: string;
  /** A word that stands behind the first. */
  readonly label?: string;
}

export interface CallSyntax {
  readonly open: string;
  readonly parse: CallParser;
  /** Other marks in it that may be tokens. */
  readonly marks: readonly string[];
  /** Words of a template that show it, beside the mark itself. */
  readonly signs?: readonly string[];
  /** Behind these calls the model waits for their results. */
  readonly endsAnswer?: true;
}

export interface OutputFormat {
  readonly thoughts: readonly Pair[];
  /** Marks around the text of an answer. */
  readonly wrappers: readonly Pair[];
  readonly calls: readonly CallSyntax[];
  /** Calls may also come as JSON without any mark. */
  readonly hasPlainCalls: boolean;
  /** Messages with channels, instead of all that. */
  readonly isHarmony: boolean;
  /** The marks that the vocabulary has as one token each. */
  readonly tokens: ReadonlyMap<number, string>;
  /** Of these, the ones that are structure and no text. */
  readonly hidden: ReadonlySet<string>;
}

const thoughts: readonly Pair[] = [
  { open: "<think>", close: "</think>" },
  { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
  { open: "<|inner_prefix|>", close: "<|inner_suffix|>" },
  { open: "<|channel>", close: "<channel|>", label: "thought" },
  { open: "[THINK]", close: "[/THINK]" },
  { open: "<seed:think>", close: "</seed:think>" },
];

const wrappers: readonly Pair[] = [
  { open: "<|START_RESPONSE|>", close: "<|END_RESPONSE|>" },
  { open: "<response>", close: "</response>" },
];

/** DeepSeek's prefix of tags is one token, which stands for its characters. */
const dsml = "｜DSML｜";
const spelledTokens = [dsml];

function tagged(open: string, close: string, isKeyed = false): CallSyntax {
  const marks = [close, keyTag, "</arg_key>", "<arg_value>", "</arg_value>"];
  return { open, parse: taggedCalls(close, isKeyed), marks };
}

function sectioned(marks: SectionMarks): CallSyntax {
  return { open: marks.open, parse: sectionedCalls(marks), marks: Object.values(marks) };
}

/** A list in JSON, behind which the mark may be missing. */
function listed(open: string, close: string): CallSyntax {
  return {
    open,
    marks: [close],
    *parse(calls) {
      const first = yield* calls.input.skipSpace();
      yield* first === "{" ? readJsonCall(calls) : readCallList(calls, readJsonCall);
      yield* calls.input.skipSpace();
      yield* calls.input.at([close]);
    },
  };
}

const syntaxes: readonly CallSyntax[] = [
  tagged("<tool_call>", "</tool_call>"),
  tagged("<seed:tool_call>", "</seed:tool_call>"),
  { open: functionTag, parse: bareFunction, marks: [] },
  { open: mistralMarks.call, parse: readMistralCalls, marks: Object.values(mistralMarks) },
  { open: "<|tool_call>", parse: gemmaCalls("<tool_call|>"), marks: ["<tool_call|>", gemmaQuote] },
  listed("<|tool_call|>", "<|/tool_call|>"),
  listed("<|START_ACTION|>", "<|END_ACTION|>"),
  {
    open: "<|tools_prefix|>",
    parse: namedCalls("<|tools_suffix|>"),
    marks: ["<|tools_suffix|>"],
    endsAnswer: true,
  },
  sectioned(deepseekMarks),
  sectioned(kimiMarks),
  {
    open: `<${dsml}function_calls>`,
    parse: invokedCalls(`</${dsml}function_calls>`, dsml),
    marks: [],
    signs: [dsml],
  },
  {
    open: "<minimax:tool_call>",
    parse: invokedCalls("</minimax:tool_call>"),
    marks: ["</minimax:tool_call>"],
  },
  {
    open: "<|tool_call_start|>",
    marks: ["<|tool_call_end|>"],
    signs: ["<|tool_list_start|>"],
    *parse(calls) {
      yield* readPythonCalls(calls);
      yield* calls.input.skipSpace();
      yield* calls.input.at(["<|tool_call_end|>"]);
    },
  },
  { open: "<|python_tag|>", parse: readTaggedPlainCalls, marks: [] },
];

/** What a format needs to know of a vocabulary. */
export interface MarkVocabulary {
  idOf(text: string): number | undefined;
  isControl(id: number): boolean;
}

/** The format of a model with this template, as text, and this vocabulary. */
export function formatOf(template: string, vocabulary?: MarkVocabulary): OutputFormat {
  const isShown = (text: string) => template.includes(text);
  const isKnown = (mark: string) => isShown(mark) || vocabulary?.idOf(mark) !== undefined;
  const { channel, message } = harmonyMarks;
  const isHarmony = [channel, message].every(isShown);
  const calls = syntaxes
    .filter(({ open, signs = [] }) => isKnown(open) || signs.some(isShown))
    .map((syntax) => {
      const isKeyed = syntax.open === "<tool_call>" && isShown(keyTag);
      return isKeyed ? tagged("<tool_call>", "</tool_call>", true) : syntax;
    });
  const pairs = {
    thoughts: thoughts.filter(({ open, close }) => isKnown(open) || isShown(close)),
    wrappers: wrappers.filter(({ open }) => isKnown(open)),
  };
  const marks = [
    ...[...pairs.thoughts, ...pairs.wrappers].flatMap(({ open, close }) => [open, close]),
    ...calls.flatMap(({ open, marks: inner }) => [open, ...inner]),
    ...(isHarmony ? Object.values(harmonyMarks) : []),
    ...spelledTokens,
  ];
  return {
    ...pairs,
    calls,
    hasPlainCalls: /\{"name": [^}]*"parameters": /.test(template) && !isShown("<tool_call>"),
    isHarmony,
    ...tokensOf(marks, vocabulary),
  };
}

function tokensOf(marks: readonly string[], vocabulary: MarkVocabulary | undefined) {
  const tokens = new Map<number, string>();
  const hidden = new Set<string>();
  for (const mark of marks) {
    const id = vocabulary?.idOf(mark);
    if (id === undefined) continue;
    tokens.set(id, mark);
    if (vocabulary?.isControl(id) === true) hidden.add(mark);
  }
  return { tokens, hidden };
}
