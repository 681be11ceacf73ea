/**
 * Real templates show calls of earlier turns in the syntax that the model was taught. What they
 * write of a call must be read as that call.
 */
import { describe, expect, test } from "bun:test";
import { AnswerCollector, type Answer } from "../../../src/chat/answer.ts";
import { templateMessages, type ChatMessage } from "../../../src/chat/messages.ts";
import { answerStart } from "../../../src/chat/output/answer-start.ts";
import { formatOf } from "../../../src/chat/output/format.ts";
import { OutputSplitter } from "../../../src/chat/output/splitter.ts";
import { TemplateError } from "../../../src/chat/template-error.ts";
import { ChatTemplate } from "../../../src/chat/template.ts";
import { thinkingVariables, type Thinking } from "../../../src/chat/thinking.ts";
import { sharedTemplates, type SharedTemplate } from "../shared-templates.ts";

const properties = { city: { type: "string" }, days: { type: "integer" } };
const parameters = { type: "object", properties, required: ["city"] };
const definition = { name: "get_weather", description: "The weather", parameters };
const tools = [{ type: "function", function: definition }];
const json = '{"city": "Paris \\"X\\"", "days": 3}';
const question: ChatMessage = { role: "user", content: "What is the weather?" };
const answer: ChatMessage = {
  role: "assistant",
  content: "",
  reasoning_content: "Hm.",
  tool_calls: [
    { id: "abc123def", type: "function", function: { name: "get_weather", arguments: json } },
  ],
};

/** Their templates show no calls. */
const withoutCalls = [
  "google-gemma-2-2b-it",
  "ibm-granite-granite-3.3-2B-Instruct",
  "microsoft-Phi-3.5-mini-instruct",
];

const all = sharedTemplates();

describe.skipIf(all.length === 0).each(all)("$name", (shared) => {
  const template = new ChatTemplate(shared.source, shared.variables);

  /**
   * What the template writes of the answer behind a question, or behind a prompt, as it is read in
   * pieces of a length; undefined if it does not write it there.
   */
  function readBack(thinking: Thinking, length: number, isPrompt: boolean): Answer | undefined {
    const render = (messages: readonly ChatMessage[], addsPrompt: boolean) =>
      renderIn(shared, template, messages, addsPrompt, thinking);
    const prompt = render([question], isPrompt);
    const whole = textOf(render([question, answer], false));
    if (!whole.startsWith(textOf(prompt))) return undefined;
    const written = whole.slice(textOf(prompt).length);
    const format = formatOf(shared.source);
    const splitter = new OutputSplitter(format, { start: answerStart(format, prompt), tools });
    const collector = new AnswerCollector();
    for (let at = 0; at < written.length; at += length) {
      for (const part of splitter.push(written.slice(at, at + length))) collector.add(part);
    }
    for (const part of splitter.end()) collector.add(part);
    return collector.answer;
  }

  test.skipIf(withoutCalls.includes(shared.name))("is read as it is written", () => {
    const answers = (isPrompt: boolean) =>
      (["on", "off", "auto"] as const)
        .flatMap((thinking) => [1, 7, Infinity].map((n) => readBack(thinking, n, isPrompt)))
        .filter((read) => read !== undefined);
    // One template never shows the thought that its prompts begin.
    const known = answers(!shared.name.includes("DeepSeek-R1"));
    expect(known.length).toBeGreaterThan(0);
    for (const { text, reasoning, toolCalls } of known) {
      expect(toolCalls).toMatchObject([{ name: "get_weather", arguments: json }]);
      expect(["", "Hm."]).toContain(reasoning);
      // Nothing but the marks that end a turn, which are tokens of their own in truth.
      expect(text.replace(/<[^<>]*>|\s/g, "")).toBe("");
    }
  });
});

function renderIn(
  { now }: SharedTemplate,
  template: ChatTemplate,
  messages: readonly ChatMessage[],
  isPrompt: boolean,
  thinking: Thinking,
) {
  const attempt = (form: "object" | "json") =>
    template.renderSegments(
      {
        ...thinkingVariables(thinking),
        messages: templateMessages(messages, form),
        tools,
        add_generation_prompt: isPrompt,
      },
      { now },
    );
  try {
    return attempt("object");
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    return attempt("json");
  }
}

function textOf(segments: readonly { readonly text: string }[]): string {
  return segments.map(({ text }) => text).join("");
}
