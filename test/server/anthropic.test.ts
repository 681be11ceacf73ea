/** Anthropic's official client against the server, with dictated answers. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { refusal } from "../helpers/refusal.ts";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served } from "../helpers/served.ts";

const source = new ScriptedSource();
let served: Served;
let client: Anthropic;

beforeAll(async () => {
  served = await serve({ source });
  client = new Anthropic({ baseURL: served.url, apiKey: "none", maxRetries: 0 });
});

afterAll(() => served.server.close());

const hello = {
  model: "spark",
  max_tokens: 100,
  messages: [{ role: "user" as const, content: "Hi" }],
};
const tools = [{ name: "get_time", input_schema: { type: "object" as const } }];
const timeCall = '<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_call>';

describe("a message", () => {
  test("is answered, with what it took and under the request's id", async () => {
    source.script = () => "Hello there!";
    const message = await client.messages.create({ ...hello, system: "Be kind." });
    expect(message).toMatchObject({
      type: "message",
      role: "assistant",
      content: [{ type: "text", text: "Hello there!" }],
      stop_reason: "end_turn",
      usage: { output_tokens: 3 },
    });
    expect(message._request_id).toStartWith("req_");
  });

  test("is answered in a stream of blocks", async () => {
    source.script = () => "Hello there!";
    const types = [];
    const stream = client.messages.stream(hello);
    for await (const { type } of stream) types.push(type);
    expect(types[0]).toBe("message_start");
    expect(types[1]).toBe("content_block_start");
    expect(types.slice(-3)).toEqual(["content_block_stop", "message_delta", "message_stop"]);
    expect((await stream.finalMessage()).content).toMatchObject([{ text: "Hello there!" }]);
  });

  test("ends at max_tokens, and at stop sequences, which are named", async () => {
    source.script = () => "one two\nthree";
    expect(await client.messages.create({ ...hello, max_tokens: 2 })).toMatchObject({
      stop_reason: "max_tokens",
    });
    expect(await client.messages.create({ ...hello, stop_sequences: ["x", "\n"] })).toMatchObject({
      content: [{ text: "one two" }],
      stop_reason: "stop_sequence",
      stop_sequence: "\n",
    });
  });

  test("may have thoughts before its text", async () => {
    source.script = () => "A greeting.\n</think>\n\nHello!";
    const thinking = { type: "enabled" as const, budget_tokens: 1024 };
    expect((await client.messages.create({ ...hello, thinking })).content).toMatchObject([
      { type: "thinking", thinking: "A greeting." },
      { type: "text", text: "Hello!" },
    ]);
  });

  test("goes on with what the client has begun", async () => {
    source.script = () => " there!";
    const begun = [...hello.messages, { role: "assistant" as const, content: "Hello" }];
    const { content } = await client.messages.create({ ...hello, messages: begun });
    expect(content).toMatchObject([{ text: " there!" }]);
    const [first] = source.begun.slice(-1);
    expect(first?.prompt.length).toBe(10);
  });
});

describe("tools", () => {
  test("are called, streamed or not, and take results", async () => {
    source.script = () => timeCall;
    const message = await client.messages.create({ ...hello, tools });
    expect(message).toMatchObject({
      content: [{ type: "tool_use", name: "get_time", input: { city: "Rome" } }],
      stop_reason: "tool_use",
    });
    const streamed = await client.messages.stream({ ...hello, tools }).finalMessage();
    expect(streamed.content).toMatchObject([{ type: "tool_use", input: { city: "Rome" } }]);
    const [use] = message.content;
    if (use?.type !== "tool_use") throw new Error("no call");
    source.script = () => "Noon.";
    const next = await client.messages.create({
      ...hello,
      tools,
      messages: [
        ...hello.messages,
        { role: "assistant", content: message.content },
        {
          role: "user",
          content: [
            {
              type: "tool_result",
              tool_use_id: use.id,
              content: [{ type: "text", text: "12:00" }],
            },
            { type: "text", text: "Thanks." },
          ],
        },
      ],
    });
    expect(next.content).toMatchObject([{ text: "Noon." }]);
  });

  test("can be forced", async () => {
    source.script = () => '{"name": "get_time", "arguments": {}}';
    for (const choice of [{ type: "any" as const }, { type: "tool" as const, name: "get_time" }]) {
      const message = await client.messages.create({ ...hello, tools, tool_choice: choice });
      expect(message).toMatchObject({ stop_reason: "tool_use", content: [{ name: "get_time" }] });
    }
  });
});

describe("errors", () => {
  test("have Anthropic's shape", async () => {
    const image = {
      type: "image" as const,
      source: { type: "base64" as const, media_type: "image/png" as const, data: "" },
    };
    const messages = [{ role: "user" as const, content: [image] }];
    const error = await refusal(client.messages.create({ ...hello, messages }));
    expect(error).toBeInstanceOf(Anthropic.BadRequestError);
    expect(error).toMatchObject({
      error: { type: "error", error: { type: "invalid_request_error" } },
    });
  });

  test("in the middle of a stream are raised", async () => {
    source.script = () => "Hello there, you";
    source.failure = { at: 2, error: new Error("a broken engine") };
    const stream = client.messages.stream(hello);
    const error = await refusal(stream.finalMessage());
    source.failure = undefined;
    expect(String(error)).toContain("a broken engine");
  });
});

test("tokens of a conversation are counted", async () => {
  const { messages } = hello;
  const counted = await client.messages.countTokens({ model: "spark", messages });
  expect(counted.input_tokens).toBe(9);
});
