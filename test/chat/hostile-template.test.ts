/** Templates that want too much: each must end as an error, soon and in little memory. */

import { expect, test } from "bun:test";
import { ChatTemplate } from "../../src/chat/template.ts";
import { TemplateError } from "../../src/chat/template-error.ts";

/** Short, so that the tests are. */
const limits = { timeMs: 150, outputLength: 1024 * 1024 };
/** Far above the limit, as machines may be busy; without the limit these would run for years. */
const patienceMs = 4000;

const nest = (text: string, times: number): string => text.repeat(times);
const double = (start: string, step: string): string =>
  `{% set ns = namespace(x=${start}) %}` +
  `{% for i in range(80) %}{% set ns.x = ${step} %}{% endfor %}`;
/** Does something a hundred thousand times with a long string, and keeps what comes out. */
const keep = (value: string): string =>
  "{% set s = 'a' * 1000000 %}{% set ns = namespace(x=none) %}" +
  `{% for i in range(100000) %}{% set ns.x = [ns.x, ${value}] %}{% endfor %}`;

const hostile: Readonly<Record<string, string>> = {
  "a huge range": "{{ range(10 ** 9) | length }}",
  "nested loops":
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
  "a loop that filters everything":
    "{% for a in range(100000) %}{% for b in range(100000) if false %}{% endfor %}{% endfor %}",
  "a repeated string": "{{ 'x' * 10 ** 9 }}",
  "a string repeated beyond counting": "{{ 'x' * 10 ** 30 }}",
  "a string that doubles": double("'xy'", "ns.x ~ ns.x"),
  "a list that doubles": double("[1]", "ns.x + ns.x"),
  "a list of itself twice, printed": `${double("[1]", "[ns.x, ns.x]")}{{ ns.x }}`,
  "a list of itself twice, as JSON": `${double("[1]", "[ns.x, ns.x]")}{{ ns.x | tojson }}`,
  "a list of itself twice, compared":
    double("[1]", "[ns.x, ns.x]") +
    `{% set a = ns.x %}${double("[1]", "[ns.x, ns.x]")}{{ a == ns.x }}`,
  "a macro that calls itself": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
  "macros that call each other by way of their callers":
    "{% macro m() %}{{ caller() }}{% endmacro %}" +
    "{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}",
  "a default that calls its macro":
    "{% macro m(a=n()) %}{% endmacro %}{% macro n() %}{{ m() }}{% endmacro %}{{ m() }}",
  "a deep indent": "{{ 'a\nb' | indent(10 ** 9) }}",
  "a deep JSON indent": "{{ [[1]] | tojson(indent=10 ** 9) }}",
  "a replacement that explodes": "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
  "a join that explodes": "{{ range(100000) | join('x' * 100000) }}",
  "a slow search":
    "{% set h = 'a' * 1000000 %}{% set n = 'a' * 500000 ~ 'b' %}" +
    "{% for i in range(100000) %}{% if n in h %}{% endif %}{% endfor %}",
  "many long comparisons":
    "{% set a = 'x' * 1000000 %}{% set b = 'x' * 1000000 %}" +
    "{% for i in range(100000) %}{% if a == b %}{% endif %}{% endfor %}",
  "a long date": "{{ strftime_now('%c' * 100000) }}",
  "much output": "{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
  "many long strings kept": keep("s ~ i"),
  "many long keys kept": keep("{s ~ i: 1}"),
  "many capitals": keep("s | upper"),
  "many titles": keep("s | title"),
  "many characters": keep("s | list"),
  "many words": keep("s.split('a')"),
  "many lengths": keep("s | length"),
  "many numbers": keep("s | int"),
  "many ranges": keep("range(100000)"),
  "many slices": keep("range(100000)[1:]"),
  "many sorted lists": keep("range(100000) | sort"),
  "many unique lists": keep("range(100000) | unique"),
  "many sorted dictionaries": keep("{'b': s, 'c': s} | dictsort(by='value')"),
  "deep parentheses": `{{ ${nest("(", 50_000)}1${nest(")", 50_000)} }}`,
  "deep blocks": nest("{% if 1 %}", 25_000),
  "a long row of nots": `{{ ${nest("not ", 50_000)}1 }}`,
  "a long difference": `{{ 1${nest(" - 1", 50_000)} }}`,
  "a long source": nest("x", 2 ** 21),
  "much white space": nest(" ", 1000),
};

test.each(Object.entries(hostile))("%s is refused", (_name, source) => {
  const start = performance.now();
  let failure: unknown;
  try {
    new ChatTemplate(source).render({ messages: [] }, { limits });
  } catch (error) {
    failure = error;
  }
  expect(failure).toBeInstanceOf(TemplateError);
  expect((failure as TemplateError).kind).toBe("limit");
  expect(performance.now() - start).toBeLessThan(patienceMs);
});

test.each([
  ["a huge power", "{{ 10 ** (10 ** 9) }}"],
  ["a number that squares", double("3", "ns.x * ns.x")],
  ["a list of itself twice, sorted", `${double("[1]", "[ns.x, ns.x]")}{{ ns.x | sort }}`],
])("%s is refused, not being what the package can do", (_name, source) => {
  const run = (): string => new ChatTemplate(source).render({ messages: [] }, { limits });
  expect(run).toThrow(TemplateError);
});

test("an input that nests too deeply is refused", () => {
  let content: unknown = "x";
  for (let i = 0; i < 200_000; i++) content = [content];
  const run = (): string => new ChatTemplate("{{ messages }}").render({ messages: [content] });
  expect(run).toThrow(TemplateError);
});

test("white space, braces and tags without end are parsed in linear time", () => {
  const start = performance.now();
  for (const source of [" ", "{ ", "{%  raw", "\n{#", "{{ '", "{{ 1_", "{% -", "{%- generation"]) {
    try {
      new ChatTemplate(source.repeat(2 ** 18 / source.length));
    } catch (error) {
      expect(error).toBeInstanceOf(TemplateError);
    }
  }
  expect(performance.now() - start).toBeLessThan(patienceMs);
});

test("a long conversation is no attack", () => {
  const messages = Array.from({ length: 1000 }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: `${"word ".repeat(100)}${i}`,
  }));
  const source =
    "{% set ns = namespace(out='') %}{% for m in messages %}" +
    "{% set ns.out = ns.out + m.role + ': ' + m.content | trim + '\n' %}{% endfor %}{{ ns.out }}";
  expect(new ChatTemplate(source).render({ messages }).length).toBe(512_390);
});
