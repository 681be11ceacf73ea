/** Completions and the list of models through OpenAI's official client. */
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

describe("completions", () => {
  test("continue several prompts, each several times, with their echo", async () => {
    source.script = () => " and on";
    const { choices, usage } = await client.completions.create({
      model: "spark",
      prompt: ["one", "two"],
      n: 2,
      echo: true,
    });
    expect(choices.map(({ index, text }) => [index, text])).toEqual([
      [0, "one and on"],
      [1, "one and on"],
      [2, "two and on"],
      [3, "two and on"],
    ]);
    expect(usage?.prompt_tokens).toBe(2);
  });

  test("take ids, stream, and end at sixteen tokens where nothing is said", async () => {
    source.script = () => "word ".repeat(40);
    const { choices, usage } = await client.completions.create({ model: "s", prompt: [300, 301] });
    expect(choices[0]?.finish_reason).toBe("length");
    expect(usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 16 });
    let text = "";
    const body = { model: "s", prompt: "one", stream: true as const };
    for await (const chunk of await client.completions.create(body)) text += chunk.choices[0]?.text;
    expect(text).toStartWith("word word");
  });

  test("have logprobs in the older shape", async () => {
    source.script = () => "Hello there";
    const { choices } = await client.completions.create({ model: "s", prompt: "a", logprobs: 1 });
    const { logprobs } = choices[0]!;
    expect(logprobs?.tokens?.join("")).toBe("Hello there");
    expect(logprobs?.text_offset?.[0]).toBe(0);
    expect(logprobs?.token_logprobs?.every((value) => value === -0.5)).toBe(true);
  });
});

describe("models", () => {
  test("are listed and found, in the shape that strict clients want", async () => {
    const { data } = await client.models.list();
    expect(data).toMatchObject([{ id: "spark", object: "model", owned_by: "zinc" }]);
    expect(Number.isInteger(data[0]?.created)).toBe(true);
    expect((await client.models.retrieve("spark")).id).toBe("spark");
    const missing = await refusal(client.models.retrieve("a/b"));
    expect(missing).toMatchObject({ status: 404, code: "model_not_found" });
  });
});
