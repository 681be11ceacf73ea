/** Ollama's official client against the server, with dictated answers. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Ollama } from "ollama";
import { refusal } from "../helpers/refusal.ts";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served } from "../helpers/served.ts";

const source = new ScriptedSource();
let served: Served;
let client: Ollama;

beforeAll(async () => {
  served = await serve({ source });
  client = new Ollama({ host: served.url });
});

afterAll(() => served.server.close());

const messages = [{ role: "user", content: "Hi" }];
const timeCall = '<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_call>';
const tools = [
  { type: "function", function: { name: "get_time", description: "The time", parameters: {} } },
];

describe("a chat", () => {
  test("is answered, whole and streamed", async () => {
    source.script = () => "Hello there!";
    const whole = await client.chat({ model: "spark", messages });
    expect(whole).toMatchObject({
      model: "spark",
      message: { role: "assistant", content: "Hello there!" },
      done: true,
      done_reason: "stop",
      prompt_eval_count: 9,
      eval_count: 3,
    });
    let text = "";
    const reasons = [];
    for await (const part of await client.chat({ model: "spark", messages, stream: true })) {
      text += part.message.content;
      reasons.push(part.done_reason);
    }
    expect(text).toBe("Hello there!");
    expect(reasons.at(-1)).toBe("stop");
  });

  test("keeps to its options", async () => {
    source.script = () => "one two three";
    const options = { num_predict: 2, temperature: 0, top_k: 5, seed: 3, stop: ["x"] };
    const { done_reason: reason } = await client.chat({ model: "spark", messages, options });
    expect(reason).toBe("length");
    expect(source.begun.at(-1)).toMatchObject({
      maxTokens: 2,
      sampling: { temperature: 0, topK: 5, seed: 3 },
    });
    const free = await client.chat({ model: "s", messages, options: { num_predict: -1 } });
    expect(free.message.content).toBe("one two three");
  });

  test("calls tools, streamed or not, and takes their results", async () => {
    source.script = () => timeCall;
    const { message } = await client.chat({ model: "spark", messages, tools });
    expect(message.tool_calls).toMatchObject([
      { function: { name: "get_time", arguments: { city: "Rome" } } },
    ]);
    const calls = [];
    for await (const part of await client.chat({ model: "s", messages, tools, stream: true })) {
      calls.push(...(part.message.tool_calls ?? []));
    }
    expect(calls).toMatchObject([{ function: { arguments: { city: "Rome" } } }]);
    source.script = () => "Noon.";
    const result = { role: "tool", content: "12:00", tool_name: "get_time" };
    const next = await client.chat({ model: "s", messages: [...messages, message, result], tools });
    expect(next.message.content).toBe("Noon.");
  });

  test("shows thoughts apart", async () => {
    source.script = () => "A greeting.\n</think>\n\nHello!";
    const { message } = await client.chat({ model: "spark", messages, think: true });
    expect(message).toMatchObject({ thinking: "A greeting.", content: "Hello!" });
  });

  test("without messages only says that the model is there", async () => {
    expect(await client.chat({ model: "spark", messages: [] })).toMatchObject({
      done: true,
      done_reason: "load",
    });
  });
});

describe("a prompt", () => {
  test("is completed with the template, or raw", async () => {
    source.script = () => " and on";
    const { response } = await client.generate({ model: "s", prompt: "one", system: "Be kind." });
    expect(response).toBe(" and on");
    await client.generate({ model: "s", prompt: "one", raw: true });
    expect(source.begun.at(-1)?.prompt).toHaveLength(1);
  });
});

test("models are listed and described", async () => {
  expect((await client.list()).models).toMatchObject([{ name: "spark" }]);
  expect((await client.ps()).models).toMatchObject([{ name: "spark", size_vram: 1000 }]);
  expect(await client.show({ model: "spark" })).toMatchObject({ details: { family: "llama" } });
  expect(await client.version()).toEqual({ version: "0.1.0" });
});

test("errors are one text", async () => {
  const images = [{ role: "user", content: "Hi", images: ["aaaa"] }];
  expect(await refusal(client.chat({ model: "s", messages: images }))).toMatchObject({
    status_code: 400,
    error: "messages[0].images is not supported; only text is supported",
  });
  source.script = () => "Hello there, you";
  source.failure = { at: 2, error: new Error("a broken engine") };
  const read = async () => {
    for await (const _part of await client.chat({ model: "s", messages, stream: true }));
  };
  const error = await refusal(read());
  source.failure = undefined;
  expect(String(error)).toContain("a broken engine");
});
