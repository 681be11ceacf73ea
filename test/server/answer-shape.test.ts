/** Answers of a given shape: through which fields, and beside tools. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served } from "../helpers/served.ts";

type Body = OpenAI.ChatCompletionCreateParamsNonStreaming;

const source = new ScriptedSource();
let served: Served;
let client: OpenAI;

beforeAll(async () => {
  served = await serve({ source });
  client = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries: 0 });
});

afterAll(() => served.server.close());

const user = (content: string) => ({ role: "user" as const, content });
const thinking = { chat_template_kwargs: { enable_thinking: true } } as Partial<Body>;
const tools = [{ type: "function" as const, function: { name: "get_time" } }];

/** The one choice of a completion. */
async function answer(script: string, more: Partial<Body> = {}) {
  source.script = () => script;
  const body = { model: "spark", messages: [user("Hi")], ...more };
  const { choices } = await client.chat.completions.create(body);
  const [choice] = choices;
  if (choice === undefined) throw new Error("no choice");
  return choice;
}

describe("a shape of the answer", () => {
  const schema = { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] };
  const format = { type: "json_schema" as const, json_schema: { name: "a", schema } };
  const call = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>';

  beforeEach(() => {
    source.forbidden.length = 0;
  });

  test("beside tools is one of two ways to answer", async () => {
    const wish = { tools, response_format: format };
    const { message } = await answer('{"a": true}', wish);
    expect(message).toMatchObject({ content: '{"a": true}' });
    const called = await answer(call, wish);
    expect(called).toMatchObject({
      finish_reason: "tool_calls",
      message: { content: null, tool_calls: [{ function: { name: "get_time" } }] },
    });
    const thought = await answer(`Hm.\n</think>${call}`, { ...thinking, ...wish });
    expect(thought.message.tool_calls).toHaveLength(1);
    expect(source.forbidden).toEqual([]);
    await answer("It is late.", wish);
    expect(source.forbidden.length).toBeGreaterThan(0);
  });

  test("is of no matter to a call that is forced", async () => {
    const script = '{"name": "get_time", "arguments": {}}';
    const wish = { tools, response_format: format, tool_choice: "required" as const };
    expect((await answer(script, wish)).message.tool_calls).toHaveLength(1);
    expect(source.forbidden).toEqual([]);
  });

  test("may be a grammar, or a schema as llama.cpp's clients send it", async () => {
    const grammar = 'root ::= "yes" | "no"';
    expect((await answer("yes", { grammar } as object)).message.content).toBe("yes");
    expect((await answer('{"a": true}', { json_schema: schema } as object)).message.content).toBe(
      '{"a": true}',
    );
    const prompt = { prompt: "Well?", grammar, max_tokens: 4 };
    source.script = () => "no";
    expect(await (await served.post("/v1/completions", prompt)).json()).toMatchObject({
      choices: [{ text: "no" }],
    });
    expect(source.forbidden).toEqual([]);
    await answer("maybe", { grammar } as object);
    expect(source.forbidden.length).toBeGreaterThan(0);
  });

  test.each([
    [{ grammar: "root ::= a" }, "grammar, line 1: there is no rule a", "grammar"],
    [{ grammar: 5 }, "grammar must be a string", "grammar"],
    [
      { grammar: 'root ::= "a"', response_format: format },
      "grammar and response_format exclude each other",
      "grammar",
    ],
    [
      { json_schema: {}, response_format: format },
      "json_schema and response_format exclude each other",
      "json_schema",
    ],
    [
      { json_schema: { type: "object", if: {} } },
      "schema: if cannot be enforced",
      "response_format",
    ],
  ])("%j is refused", async (fields, message, param) => {
    const body = { messages: [user("Hi")], ...fields };
    const response = await served.post("/v1/chat/completions", body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { message, param } });
  });
});
