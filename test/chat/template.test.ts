/** Chat templates as a whole: real ones against Python's Jinja, and what happens to bad ones. */

import { describe, expect, test } from "bun:test";
import { chatMlTemplate } from "../../src/chat/chatml.ts";
import { ChatTemplate } from "../../src/chat/template.ts";
import { TemplateError } from "../../src/chat/template-error.ts";
import { sharedTemplates } from "./shared-templates.ts";

function failureOf(run: () => unknown): TemplateError {
  try {
    run();
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

const templates = sharedTemplates();

test.skipIf(templates.length === 0)("../shared/vectors/templates is there to compare with", () => {
  expect(templates.length).toBeGreaterThanOrEqual(20);
});

describe.each(templates)("the template of $name", ({ source, variables, now, cases }) => {
  const template = new ChatTemplate(source, variables);

  test.each(cases)("renders $name as Python does", ({ input, output }) => {
    const run = (): string => template.render(input, { now });
    if (output === undefined) expect(run).toThrow(TemplateError);
    else expect(run()).toBe(output);
  });
});

describe("a template that fails", () => {
  test.each([
    ["{% frobnicate %}", "Unknown statement type: frobnicate"],
    ["{{ 1 + }}", "Unexpected token: CloseExpression"],
    ["{% for x in y %}", "unexpected end of the template"],
    ["{{ 'abc }}", "Unexpected end of input"],
    ["{% endif %}", "Unknown statement type: endif"],
    ["{{ f(a=1, 2) }}", "Positional arguments must come before keyword arguments"],
    ["{# never ends", "Missing end of comment tag"],
    ["{{ '\\x4' }}", "Invalid hexadecimal escape sequence: \\x4'"],
  ])("%s is no template", (source, message) => {
    const error = failureOf(() => new ChatTemplate(source));
    expect([error.kind, error.message]).toEqual(["parse", message]);
  });

  test("passes on its own words when it refuses the messages", () => {
    const template = new ChatTemplate("\n\n{{ raise_exception('No system role, please') }}");
    const error = failureOf(() => template.render({ messages: [] }));
    expect([error.kind, error.message]).toEqual(["raised", "No system role, please"]);
  });

  test.each([
    ["{{ m.content + 'x' }}", "cannot + Null and String"],
    ["{{ m.content.x.y }}", "cannot look up 'y' in something undefined"],
    ["{% for x in m.content %}{% endfor %}", "cannot loop over: Null"],
    ["{{ m | nonsense }}", "Unknown ObjectValue filter: nonsense"],
    ["{{ m is nonsense }}", "No test named 'nonsense'."],
    ["{% break %}", "'Break' outside loop"],
  ])("says what is wrong with %s", (source, message) => {
    const error = failureOf(() => new ChatTemplate(source).render({ m: { content: null } }));
    expect([error.kind, error.message]).toEqual(["runtime", message]);
  });
});

describe("a template", () => {
  test("tells which names it reads", () => {
    const template = new ChatTemplate("{% if tools %}{{ strftime_now('%Y') }}{% endif %}");
    expect(["tools", "strftime_now", "documents"].map((name) => template.mentions(name))).toEqual([
      true,
      true,
      false,
    ]);
  });

  test("renders each input afresh, whatever an earlier one set", () => {
    const template = new ChatTemplate("{{ x }}{% set x = 2 %}{{ x }}");
    expect([template.render({}), template.render({ x: 1 }), template.render({})]).toEqual([
      "2",
      "12",
      "2",
    ]);
  });

  test("takes variables of the model unless the input has its own", () => {
    const template = new ChatTemplate("{{ bos_token }}{{ eos_token }}", {
      bos_token: "<s>",
      eos_token: "</s>",
    });
    expect(template.render({})).toBe("<s></s>");
    expect(template.render({ eos_token: "<end>" })).toBe("<s><end>");
  });
});

describe("the template for models without one", () => {
  const template = new ChatTemplate(chatMlTemplate);

  test("is ChatML", () => {
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: " hi " },
      { role: "assistant", content: null },
    ];
    expect(template.render({ messages, add_generation_prompt: true })).toBe(
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n hi <|im_end|>\n" +
        "<|im_start|>assistant\n<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("leaves out the last line unless asked for it", () => {
    expect(template.render({ messages: [] })).toBe("");
  });
});
