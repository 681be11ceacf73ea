/** Messages in all shapes that clients send, as templates take them. */
import { describe, expect, test } from "bun:test";
import { templateMessages } from "../../src/chat/messages.ts";

const calling = (json: unknown) => [
  { role: "assistant", content: null, tool_calls: [{ function: { name: "f", arguments: json } }] },
];

describe("content", () => {
  test.each([
    ["text", "Hi", "Hi"],
    ["null", null, ""],
    ["missing", undefined, ""],
    ["parts", [{ type: "text", text: "Hi, " }, "you"], "Hi, you"],
    ["no parts", [], ""],
  ])("that is %s becomes text", (_name, content, expected) => {
    expect(templateMessages([{ role: "user", content }], "object")).toEqual([
      { role: "user", content: expected },
    ]);
  });

  test("of another kind is refused with the number of the message", () => {
    const image = [{ type: "image_url", image_url: { url: "x" } }];
    const messages = [
      { role: "user", content: "Hi" },
      { role: "user", content: image },
    ];
    expect(() => templateMessages(messages, "object")).toThrow(
      "message 1 has content of type image_url",
    );
  });
});

describe("arguments of calls", () => {
  const given = (json: unknown, form: "object" | "json") => {
    const [message] = templateMessages(calling(json), form);
    return (message?.["tool_calls"] as { function: { arguments: unknown } }[])[0]?.function
      .arguments;
  };

  test.each([
    ["JSON", '{"a": 1}', { a: 1 }, '{"a": 1}'],
    ["an object", { a: 1 }, { a: 1 }, '{"a":1}'],
    ["half an object", '{"a"', '{"a"', '{"a"'],
    ["nothing", "", "", ""],
    ["null", "null", "null", "null"],
  ])("that are %s become an object, or JSON", (_name, json, object, text) => {
    expect(given(json, "object")).toEqual(object);
    expect(given(json, "json")).toEqual(text);
  });
});

test("a thought before a call has a second name, which gpt-oss looks for", () => {
  const [message] = templateMessages([{ ...calling("{}")[0]!, reasoning_content: "Hm." }], "json");
  expect(message).toMatchObject({ reasoning_content: "Hm.", thinking: "Hm." });
});
