/** Chat completions through OpenAI's official client, with dictated answers. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { refusal } from "../helpers/refusal.ts";
import { ScriptedSource, type Script } from "../helpers/scripted-source.ts";
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

/** The one choice of a completion. */
async function answer(script: Script, more: Partial<Body> = {}) {
  source.script = () => script;
  const body = { model: "spark", messages: [user("Hi")], ...more };
  const { choices, usage } = await client.chat.completions.create(body);
  const [choice] = choices;
  if (choice === undefined) throw new Error("no choice");
  return { ...choice, usage };
}

/** The same, put together from a stream. */
async function streamed(script: Script, more: Partial<Body> = {}) {
  source.script = () => script;
  const body = { model: "spark", messages: [user("Hi")], ...more, stream: true as const };
  const stream = await client.chat.completions.create(body);
  const result = { content: "", reasoning: "", pieces: [] as string[] };
  const calls: { id: string; name: string; arguments: string; type: string }[] = [];
  const reasons: unknown[] = [];
  const ids = new Set<string>();
  for await (const chunk of stream) {
    ids.add(chunk.id);
    const [choice] = chunk.choices;
    reasons.push(choice?.finish_reason);
    const {
      content,
      tool_calls: deltas,
      reasoning_content: reasoning,
    } = (choice?.delta as OpenAI.ChatCompletionChunk.Choice.Delta & {
      reasoning_content?: string;
    }) ?? {};
    if (content) result.pieces.push(content);
    result.content += content ?? "";
    result.reasoning += reasoning ?? "";
    for (const { index, id, type, function: part } of deltas ?? []) {
      if (id !== undefined) calls[index] = { id, name: "", arguments: "", type: type ?? "" };
      const call = calls[index];
      if (call === undefined) throw new Error("a delta of no call");
      call.name += part?.name ?? "";
      call.arguments += part?.arguments ?? "";
    }
  }
  expect(ids.size).toBe(1);
  return { ...result, calls, reasons };
}

describe("an answer", () => {
  test("comes whole, with what it took", async () => {
    const { message, finish_reason: reason, usage } = await answer("Hello there!");
    expect(message).toMatchObject({ role: "assistant", content: "Hello there!" });
    expect(reason).toBe("stop");
    expect(usage).toMatchObject({ prompt_tokens: 9, total_tokens: 9 + usage!.completion_tokens });
  });

  test("comes streamed, and null is the reason until the last piece", async () => {
    const { content, reasons } = await streamed("Hello there!");
    expect(content).toBe("Hello there!");
    expect(reasons.at(-1)).toBe("stop");
    expect(new Set(reasons.slice(0, -1))).toEqual(new Set([null]));
  });

  test("ends with length at max_tokens, and at max_completion_tokens", async () => {
    for (const limit of [{ max_tokens: 3 }, { max_completion_tokens: 3 }]) {
      const { finish_reason: reason, usage } = await answer("one two three four five six", limit);
      expect(reason).toBe("length");
      expect(usage?.completion_tokens).toBe(3);
    }
  });

  test("of one token is one token", async () => {
    const { usage, message } = await answer("Hello there!", { max_tokens: 1 });
    expect(usage?.completion_tokens).toBe(1);
    expect(message.content).toBe("Hello");
  });

  test("without max_tokens ends at the edge of the context", async () => {
    const { finish_reason: reason, usage } = await answer("word ".repeat(600));
    expect(reason).toBe("length");
    expect(usage?.total_tokens).toBe(513);
  });

  test("streams characters whole, and each as soon as it is complete", async () => {
    const { pieces } = await streamed("hi😀歪é");
    expect(pieces.join("")).toBe("hi😀歪é");
    expect(pieces[0]).toBe("hi");
    expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
  });
});

describe("usage", () => {
  test("comes in a stream if it is asked for, as the last chunk, without choices", async () => {
    source.script = () => "Hello";
    const chunks = [];
    const stream = await client.chat.completions.create({
      model: "spark",
      messages: [user("Hi")],
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) chunks.push(chunk);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 9 } });
    expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
  });

  test("does not come in a stream otherwise", async () => {
    source.script = () => "Hello";
    const stream = await client.chat.completions.create({
      model: "spark",
      messages: [user("Hi")],
      stream: true,
    });
    for await (const chunk of stream) expect(chunk).not.toHaveProperty("usage");
  });
});

describe("a stop string", () => {
  test.each([
    ["one\ntwo", "\n", "one"],
    ["Bob: hi\nAlice: hello", "Alice:", "Bob: hi\n"],
    ["Really?\nYes", "?\n", "Really"],
    ["abcabd", "abd", "abc"],
  ])("ends %j at %j, streamed or not", async (script, stop, expected) => {
    const { message, finish_reason: reason } = await answer(script, { stop });
    expect(message.content).toBe(expected);
    expect(reason).toBe("stop");
    expect((await streamed(script, { stop: [stop] })).content).toBe(expected);
  });

  test("that is begun and not finished is text", async () => {
    expect((await answer("one\ntw", { stop: "\nthree" })).message.content).toBe("one\ntw");
    expect((await streamed("one\nth", { stop: "\nthree" })).content).toBe("one\nth");
  });

  test("may be a mark", async () => {
    const { message } = await answer("Yes<tool_call>", { stop: "<tool_call>" });
    expect(message.content).toBe("Yes");
  });
});

const tools = ["get_weather", "get_time"].map((name) => ({
  type: "function" as const,
  function: { name, parameters: { type: "object", properties: { city: { type: "string" } } } },
}));

const call = (name: string, city: string) =>
  `<tool_call>\n{"name": "${name}", "arguments": {"city": "${city}"}}\n</tool_call>`;

describe("tool calls", () => {
  const two = `${call("get_weather", "Paris")}\n${call("get_time", "Rome")}`;

  test("two come with ids of their own, as text arguments", async () => {
    const { message, finish_reason: reason } = await answer(two, { tools });
    expect(reason).toBe("tool_calls");
    expect(message.content).toBeNull();
    const calls = message.tool_calls as OpenAI.ChatCompletionMessageFunctionToolCall[];
    expect(calls.map(({ function: made }) => made)).toEqual([
      { name: "get_weather", arguments: '{"city": "Paris"}' },
      { name: "get_time", arguments: '{"city": "Rome"}' },
    ]);
    expect(calls.every(({ id }) => /^call_\w{24}$/.test(id))).toBe(true);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
  });

  test("two come streamed with indexes 0 and 1 and one id each", async () => {
    const { calls, reasons } = await streamed(two, { tools });
    expect(calls).toMatchObject([
      { name: "get_weather", arguments: '{"city": "Paris"}', type: "function" },
      { name: "get_time", arguments: '{"city": "Rome"}', type: "function" },
    ]);
    expect(reasons.at(-1)).toBe("tool_calls");
  });

  test("stand behind text that comes before them", async () => {
    const { message } = await answer(`Let me see.\n${call("get_time", "Rome")}`, { tools });
    expect(message.content).toBe("Let me see.");
    expect(message.tool_calls).toHaveLength(1);
  });

  test("are one if parallel calls are not wanted", async () => {
    const wish = { tools, parallel_tool_calls: false };
    expect((await answer(two, wish)).message.tool_calls).toHaveLength(1);
    expect((await streamed(two, wish)).calls).toHaveLength(1);
  });

  test("that are cut off end with length and do not count", async () => {
    const { message, finish_reason: reason } = await answer(two, { tools, max_tokens: 12 });
    expect(reason).toBe("length");
    expect(message.tool_calls).toBeUndefined();
  });

  test("are text where no tools are offered, or none are to be called", async () => {
    const { message } = await answer(call("get_time", "Rome"));
    expect(message.content).toContain("get_time");
    expect(message.tool_calls).toBeUndefined();
    const none = await answer("No.", { tools, tool_choice: "none" });
    expect(none.message.content).toBe("No.");
    expect(none.usage?.prompt_tokens).toBe(9);
  });

  test("can be forced: of any tool, or of one", async () => {
    const script = '{"name": "get_time", "arguments": {"city": "Rome"}}';
    for (const choice of [
      "required" as const,
      { type: "function" as const, function: { name: "get_time" } },
    ]) {
      const { message, finish_reason: reason } = await answer(script, {
        tools,
        tool_choice: choice,
      });
      expect(reason).toBe("tool_calls");
      expect(message.tool_calls).toMatchObject([
        { function: { name: "get_time", arguments: '{"city": "Rome"}' } },
      ]);
      expect(source.begun.at(-1)?.mask).toBeDefined();
      expect((await streamed(script, { tools, tool_choice: choice })).calls).toHaveLength(1);
    }
  });

  test("cannot be forced of a tool that is missing, or cannot be held to its schema", async () => {
    const choice = { type: "function" as const, function: { name: "other" } };
    expect(await refusal(answer("", { tools, tool_choice: choice }))).toMatchObject({
      status: 400,
      param: "tool_choice",
    });
    const odd = { name: "odd", parameters: { type: "object", if: {} } };
    const mixed = [...tools, { type: "function" as const, function: odd }];
    expect(await refusal(answer("", { tools: mixed, tool_choice: "required" }))).toMatchObject({
      status: 400,
      code: "unsupported_schema",
      error: { message: "tool odd: schema: if cannot be enforced" },
    });
    expect((await answer("Yes.", { tools: mixed })).message.content).toBe("Yes.");
  });

  test("go back as history, also what was broken, in every shape", async () => {
    const { message } = await answer(two, { tools });
    const results = message.tool_calls!.map(({ id }) => ({
      role: "tool" as const,
      tool_call_id: id,
      content: "18 degrees",
    }));
    const again = await answer("Fine.", { tools, messages: [user("Hi"), message, ...results] });
    expect(again.message.content).toBe("Fine.");
    for (const broken of ["{", "", "null", "[1]"]) {
      const bad = { ...message, tool_calls: [fake(broken)] } as never;
      const { message: next } = await answer("Fine.", { tools, messages: [user("Hi"), bad] });
      expect(next.content).toBe("Fine.");
    }
  });
});

const fake = (given: unknown) => ({
  id: "call_1",
  type: "function",
  function: { name: "get_time", arguments: given },
});

const thinking = { chat_template_kwargs: { enable_thinking: true } } as Partial<Body>;

describe("thoughts", () => {
  test("are apart from the text, streamed or not", async () => {
    const script = "It is a greeting.\n</think>\n\nHello!";
    const { message, usage } = await answer(script, thinking);
    expect(message).toMatchObject({ content: "Hello!", reasoning_content: "It is a greeting." });
    expect(usage?.completion_tokens_details?.reasoning_tokens).toBeGreaterThan(3);
    const stream = await streamed(script, thinking);
    expect(stream).toMatchObject({ content: "Hello!", reasoning: "It is a greeting." });
  });

  test("may come before an answer that has a shape, which begins behind them", async () => {
    source.forbidden.length = 0;
    const schema = { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] };
    const format = { type: "json_schema" as const, json_schema: { name: "a", schema } };
    const script = 'Yes or no?\n</think>{"a": true}';
    const { message } = await answer(script, { ...thinking, response_format: format });
    expect(message).toMatchObject({ content: '{"a": true}', reasoning_content: "Yes or no?" });
    expect(source.forbidden).toEqual([]);
    await answer("Yes.\n</think>Yes.", { ...thinking, response_format: format });
    expect(source.forbidden.length).toBeGreaterThan(0);
  });

  test("are over before a call that is forced", async () => {
    source.forbidden.length = 0;
    const script = '{"name": "get_time", "arguments": {}}';
    const wish = { ...thinking, tools, tool_choice: "required" as const };
    const { message } = await answer(script, wish);
    expect(message.tool_calls).toHaveLength(1);
    expect(source.forbidden).toEqual([]);
  });

  test("are switched off by reasoning_effort none", async () => {
    const { usage } = await answer("Hello!", { reasoning_effort: "none" });
    expect(usage?.prompt_tokens).toBeGreaterThan(9);
  });
});

describe("n", () => {
  test("gives as many choices, whose prompt counts once", async () => {
    source.script = ({ sampling }) => `seed ${sampling.seed}`;
    const body = { model: "spark", messages: [user("Hi")], n: 2, seed: 7 };
    const { choices, usage } = await client.chat.completions.create(body);
    expect(choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, "seed 7"],
      [1, "seed 8"],
    ]);
    expect(usage?.prompt_tokens).toBe(9);
  });

  test("gives as many streams in one", async () => {
    source.script = ({ sampling }) => `seed ${sampling.seed}`;
    const texts = ["", ""];
    const body = { model: "spark", messages: [user("Hi")], n: 2, seed: 7, stream: true as const };
    for await (const { choices } of await client.chat.completions.create(body)) {
      for (const { index, delta } of choices) texts[index] += delta.content ?? "";
    }
    expect(texts).toEqual(["seed 7", "seed 8"]);
  });
});

describe("logprobs", () => {
  const wish = { logprobs: true, top_logprobs: 2 };

  test("are there for every token, with alternatives, streamed or not", async () => {
    const { logprobs, usage } = await answer("Hello there!", wish);
    expect(logprobs?.content).toHaveLength(usage!.completion_tokens);
    expect(logprobs?.content?.map(({ token }) => token).join("")).toBe("Hello there!");
    expect(logprobs?.content?.[0]).toMatchObject({ token: "Hello", logprob: -0.5 });
    expect(logprobs?.content?.[0]?.top_logprobs).toHaveLength(2);
    let text = "";
    const body = { model: "spark", messages: [user("Hi")], ...wish, stream: true as const };
    for await (const { choices } of await client.chat.completions.create(body)) {
      text += choices[0]?.logprobs?.content?.map(({ token }) => token).join("") ?? "";
    }
    expect(text).toBe("Hello there!");
  });

  test("leave out the tokens of a stop string", async () => {
    const { logprobs } = await answer("one\ntwo", { ...wish, stop: "\n" });
    expect(logprobs?.content?.map(({ token }) => token).join("")).toBe("one");
  });
});

describe("sampling parameters", () => {
  test("reach the sampler under all their names", async () => {
    await answer("", {
      temperature: 0.5,
      top_p: 0.9,
      top_k: 7,
      min_p: 0.1,
      repetition_penalty: 1.1,
      presence_penalty: 0.3,
      frequency_penalty: 0.2,
      logit_bias: { "5": -100, "6": 1 },
      seed: 42,
    } as Partial<Body>);
    expect(source.begun.at(-1)?.sampling).toEqual({
      temperature: 0.5,
      topP: 0.9,
      topK: 7,
      minP: 0.1,
      repeatPenalty: 1.1,
      presencePenalty: 0.3,
      frequencyPenalty: 0.2,
      logitBias: new Map([
        [5, -100],
        [6, 1],
      ]),
      seed: 42,
    });
  });

  test("that are null are the usual ones", async () => {
    await answer("", { temperature: null, top_p: null, max_tokens: null });
    expect(source.begun.at(-1)?.sampling).toMatchObject({ temperature: 0.8, topP: 0.95 });
  });
});
