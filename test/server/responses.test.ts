/** Responses through OpenAI's official client. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { refusal } from "../helpers/refusal.ts";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served } from "../helpers/served.ts";

const source = new ScriptedSource();
let served: Served;
let client: OpenAI;

beforeAll(async () => {
  served = await serve({ source });
  client = new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries: 0 });
});

afterAll(() => served.server.close());

const call = (name: string, city: string) =>
  `<tool_call>\n{"name": "${name}", "arguments": {"city": "${city}"}}\n</tool_call>`;

describe("responses", () => {
  test("are text, whole and streamed", async () => {
    source.script = () => "Hello there!";
    const response = await client.responses.create({ model: "spark", input: "Hi" });
    expect(response).toMatchObject({ status: "completed", output_text: "Hello there!" });
    const events = [];
    for await (const event of await client.responses.create({
      model: "spark",
      input: [{ role: "user", content: "Hi" }],
      stream: true,
    })) {
      events.push(event);
    }
    expect(events.map(({ type }) => type.replace("response.", ""))).toEqual([
      "created",
      "in_progress",
      "output_item.added",
      "content_part.added",
      ...Array.from({ length: events.length - 8 }, () => "output_text.delta"),
      "output_text.done",
      "content_part.done",
      "output_item.done",
      "completed",
    ]);
    expect(events.map((event) => event.sequence_number)).toEqual([...events.keys()]);
  });

  test("call tools, and take their results", async () => {
    source.script = () => call("get_time", "Rome");
    const offered = [
      { type: "function" as const, name: "get_time", parameters: {}, strict: false },
    ];
    const { output } = await client.responses.create({ model: "s", input: "Hi", tools: offered });
    const [made] = output;
    if (made?.type !== "function_call") throw new Error("no call");
    expect(made).toMatchObject({ name: "get_time", arguments: '{"city": "Rome"}' });
    source.script = () => "Noon.";
    const next = await client.responses.create({
      model: "s",
      tools: offered,
      input: [
        { role: "user", content: "Hi" },
        made,
        { type: "function_call_output", call_id: made.call_id, output: "12:00" },
      ],
    });
    expect(next.output_text).toBe("Noon.");
  });

  test("are incomplete at max_output_tokens, and never stored", async () => {
    source.script = () => "one two three four";
    const body = { model: "s", input: "Hi", max_output_tokens: 2 };
    expect(await client.responses.create(body)).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      store: false,
    });
    const later = client.responses.create({ model: "s", input: "x", previous_response_id: "r" });
    expect(await refusal(later)).toMatchObject({ status: 400, param: "previous_response_id" });
  });
});
