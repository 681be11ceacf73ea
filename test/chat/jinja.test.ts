/** The language of the templates, feature by feature, against what Python's Jinja gives. */

import { describe, expect, test } from "bun:test";
import { ChatTemplate } from "../../src/chat/template.ts";
import { TemplateError } from "../../src/chat/template-error.ts";
import { Float, parseTemplateInput } from "../../src/chat/template-input.ts";
import reference from "./jinja-cases.json";

interface Case {
  readonly name: string;
  readonly template: string;
  readonly text?: string;
  readonly error?: string;
}

const now = (): Date => new Date(reference.now);

function render(template: string, input: object = reference.input): string {
  return new ChatTemplate(template).render({ ...input }, { now });
}

/**
 * The cases that differ, and why. No chat template that we know needs any of them. Where there is
 * a text, it is another one than Python's; the others end as an error.
 */
const differs: Readonly<Record<string, string>> = {
  "a plus keeps them": "the package's lexer knows no plus signs",
  "raw blocks are text": "the package's parser knows no raw blocks",
  "raw blocks obey signs": "the package's parser knows no raw blocks",
  "set with a body and filters": "the package's parser knows no filters there",
  "for cycles and notices changes": "`loop` has neither method",
  "recursive loops": "the package's parser does not know them",
  "macros catch the rest if they name it": "text: `varargs` is a list, not a tuple",
  "filter blocks": "the package's parser takes one filter, not several",
  with: "the package's parser does not know it, and transformers does not need it",
  "generation blocks only open a scope": "text: the package drops the tags, so that they open none",
  do: "transformers does not know it either",
  "floats have exponents where Python has them": "the package's lexer knows no exponents",
  "integers have no bounds": "text: the package calculates with floats",
  "lists, tuples and dictionaries as Python's repr": "the package's parser refuses `(1,)`",
  "views and ranges": "text: they are lists to the package",
  "strings and lists repeat and join": "the package's parser refuses `(1,)`; lists do not repeat",
  "a tilde binds closer than plus": "text: to the package's parser both bind alike",
  "containers are equal by their items": "the package's parser refuses `(1,)`",
  "comparisons chain": "the package's parser takes `1 < 2 < 3` for `(1 < 2) < 3`",
  "percent formatting": "not provided",
  "percent formatting by name": "not provided",
  "dictionaries from functions and literals": "the package's keys are strings",
  "list methods": "not provided; the sandbox of transformers refuses those that change a list",
  case: "`swapcase` is not provided",
  "splitlines and partition": "not provided",
  replace: "nothing can be replaced between characters",
  "find, index and count": "not provided",
  padding: "not provided",
  questions: "not provided",
  format: "not provided",
  "format specifications": "not provided",
  escapes: "the package's lexer refuses escapes that Python leaves alone",
  dictsort: "text: the package's pairs are lists, not tuples",
  "unique, min, max, sum": "only `unique` is provided",
  groupby: "not provided",
  "batch and slice": "not provided",
  reverse: "the package's filter takes no strings",
  "int and float": "text: the package's filter takes no base",
  "round and abs": "only `abs` is provided",
  "truncate, center, wordcount": "not provided",
  "escape and urlencode": "not provided",
  items: "text: the package's pairs are lists, not tuples",
  "string, list, format": "`format` is not provided",
  "names of filters and tests": "not provided",
};

/** What a case gives: its text, or undefined for an error. */
function outcome({ template }: Case): string | undefined {
  try {
    return render(template);
  } catch (error) {
    if (error instanceof TemplateError) return undefined;
    throw error;
  }
}

for (const [group, cases] of Object.entries<Case[]>(reference.groups)) {
  describe(`Jinja's ${group}`, () => {
    const alike = cases.filter(({ name }) => !(name in differs));
    test.each(alike.map((entry) => [entry.name, entry] as const))("%s", (_name, entry) => {
      expect(outcome(entry)).toBe(entry.error === undefined ? (entry.text ?? "") : undefined);
    });

    const unlike = cases.filter(({ name }) => name in differs);
    if (unlike.length === 0) return;
    test.each(unlike.map((entry) => [entry.name, differs[entry.name], entry] as const))(
      "%s differs: %s",
      (_name, reason, entry) => {
        const text = outcome(entry);
        expect(text).not.toBe(entry.error === undefined ? (entry.text ?? "") : undefined);
        expect(text !== undefined).toBe(reason?.startsWith("text: ") === true);
      },
    );
  });
}

test("every case that differs is one of the reference", () => {
  const names = Object.values<Case[]>(reference.groups)
    .flat()
    .map(({ name }) => name);
  expect(Object.keys(differs).filter((name) => !names.includes(name))).toEqual([]);
});

describe("numbers of the input", () => {
  test("whole numbers are integers, others floats", () => {
    expect(render("{{ a }} {{ b }} {{ a is integer }}", { a: 1, b: 1.5 })).toBe("1 1.5 True");
  });

  test("a float that looks whole keeps its point where the JSON had one", () => {
    const input = parseTemplateInput('{"a": 1.0, "b": [1e2, 1], "c": 123456789012345678901}');
    expect(input).toEqual({
      a: new Float(1),
      b: [new Float(100), 1],
      c: 123456789012345678901n,
    });
    const text = '1.0 [100.0, 1] 123456789012345678901 {"a": 1.0}';
    expect(render("{{ a }} {{ b }} {{ c }} {{ {'a': a} | tojson }}", input as object)).toBe(text);
  });

  test("an absent variable is undefined, null is none", () => {
    const template = "{{ a is defined }} {{ b is defined }} {{ b }}";
    expect(render(template, { a: undefined, b: null })).toBe("False True None");
  });
});

describe("the clock", () => {
  test("strftime_now leaves out zeros where a minus asks for it, and what it does not know", () => {
    const template = "{{ strftime_now('%-m/%-d %-H %j %Q %') }}";
    expect(new ChatTemplate(template).render({}, { now: () => new Date(2026, 2, 4, 5) })).toBe(
      "3/4 5 063 %Q %",
    );
  });

  test("without a clock the date is today's", () => {
    const year = new ChatTemplate("{{ strftime_now('%Y') }}").render({});
    expect(Number(year)).toBeGreaterThanOrEqual(2026);
  });
});

describe("where the package departs from Python, this", () => {
  test.each([
    [
      "gives each turn of a loop a scope",
      "{% for i in [1, 2] %}{{ x }}{% set x = i %}{% endfor %}|",
      "|",
    ],
    [
      "prints what a turn wrote before it broke off",
      "{% for i in [1, 2] %}{{ i }}{% break %}{% endfor %}",
      "1",
    ],
    ["unpacks tuples", "{% for a, b in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}", "12"],
    ["sees an integer where a float has none", "{{ [1.0, 2] }}", "[1.0, 2]"],
    ["strips what is no string", "{{ none | trim }}{{ [1] | trim }}", "None[1]"],
    [
      "tests membership",
      "{{ 'a' is in ['a'] }}{{ 'a' is not in 'b' }}{{ none in [none] }}",
      "TrueTrueTrue",
    ],
    ["maps filters", "{{ [{'a': 1}] | map('tojson') | join }}", '{"a": 1}'],
    [
      "selects what has no such attribute",
      "{{ [{}, {'a': 1}] | selectattr('a', 'undefined') | list }}",
      "[{}]",
    ],
    ["counts code points", "{{ '🙂a' | length }}{{ '🙂a'[1] }}{{ '🙂a'[:1] }}", "2a🙂"],
    ["divides with the sign of the divisor", "{{ -7 % 3 }}{{ 7 // -2 }}", "2-4"],
  ])("%s", (_name, template, text) => {
    expect(render(template)).toBe(text);
  });

  test.each([
    ["joins no text with anything else", "{{ 'a' + 1 }}"],
    ["looks up nothing in something undefined", "{{ a.b.c }}"],
    ["divides by no zero", "{{ 1 / 0 }}"],
    ["reads no keyword that a macro does not have", "{% macro m() %}{% endmacro %}{{ m(a=1) }}"],
  ])("%s", (_name, template) => {
    expect(() => render(template)).toThrow(TemplateError);
  });
});
