/** Which templates have a switch for thinking, told by what they render. */
import { expect, test } from "bun:test";
import { ChatTemplate } from "../../src/chat/template.ts";
import { canSwitchThinking, thinkingVariables } from "../../src/chat/thinking.ts";

test.each([
  ["{{ '<think>' if enable_thinking }}", true],
  ["{% if thinking %}Think.{% endif %}", true],
  ["{% for m in messages %}{{ m.thinking }}{% endfor %}", false],
  ["{{ raise_exception('no') }}", false],
  ["plain", false],
])("%s has one: %p", (source, expected) => {
  expect(canSwitchThinking(new ChatTemplate(source))).toBe(expected);
});

test("auto leaves it to the template", () => {
  expect(thinkingVariables("auto")).toEqual({});
  expect(thinkingVariables("off")).toEqual({ enable_thinking: false, thinking: false });
});
