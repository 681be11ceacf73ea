/** What requests are refused for: always with a status, a type, a message and the field. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SeededRandom } from "../helpers/seeded-random.ts";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served } from "../helpers/served.ts";

let served: Served;

beforeAll(async () => {
  served = await serve({ source: new ScriptedSource("Hello"), contextTokens: 64 });
});

afterAll(() => served.server.close());

const user = (content: unknown) => ({ role: "user", content });
const hi = { messages: [user("Hi")] };

/** Status and error of a request. */
async function refused(path: string, body: unknown): Promise<Record<string, unknown>> {
  const response = await served.post(path, body);
  const { error } = (await response.json()) as { error?: Record<string, unknown> };
  return { status: response.status, ...error };
}

describe("a chat is refused for", () => {
  test.each([
    [{}, "messages", "messages is missing"],
    [{ messages: null }, "messages", "messages must be a list of messages"],
    [{ messages: "Hi" }, "messages", "messages must be a list of messages"],
    [{ messages: {} }, "messages", "messages must be a list of messages"],
    [{ messages: [] }, "messages", "messages must not be empty"],
    [{ messages: [[]] }, "messages[0].role", undefined],
    [{ messages: [null] }, "messages[0]", undefined],
    [{ messages: [{ content: "x" }] }, "messages[0].role", undefined],
    [
      { messages: [{ role: "bot", content: "x" }] },
      "messages[0].role",
      "messages[0].role must be system, developer, user, assistant or tool",
    ],
    [{ messages: [{ role: "user" }] }, "messages[0].content", "messages[0].content is missing"],
    [{ messages: [user(5)] }, "messages[0].content", undefined],
    [
      { messages: [user([{ type: "image_url", image_url: {} }])] },
      "messages[0].content",
      undefined,
    ],
    [{ ...hi, temperature: -1 }, "temperature", "temperature must be a number from 0 to 100"],
    [{ ...hi, temperature: "0" }, "temperature", "temperature must be a number from 0 to 100"],
    [{ ...hi, top_p: 1.5 }, "top_p", "top_p must be a number from 0 to 1"],
    [{ ...hi, max_tokens: 0 }, "max_tokens", "max_tokens must be a whole number from 1"],
    [{ ...hi, max_tokens: 1.5 }, "max_tokens", "max_tokens must be a whole number from 1"],
    [{ ...hi, max_completion_tokens: -1 }, "max_completion_tokens", undefined],
    [{ ...hi, n: 0 }, "n", "n must be a whole number from 1 to 16"],
    [{ ...hi, n: 17 }, "n", "n must be a whole number from 1 to 16"],
    [{ ...hi, stop: [1] }, "stop", undefined],
    [{ ...hi, seed: 1.5 }, "seed", "seed must be a whole number"],
    [{ ...hi, stream: "yes" }, "stream", "stream must be true or false"],
    [{ ...hi, logit_bias: { x: 1 } }, "logit_bias.x", undefined],
    [{ ...hi, logit_bias: { 1: 101 } }, "logit_bias.1", undefined],
    [{ ...hi, logit_bias: { 9999: 1 } }, "logit_bias", undefined],
    [{ ...hi, top_logprobs: 2 }, "top_logprobs", "top_logprobs needs logprobs to be true"],
    [{ ...hi, logprobs: true, top_logprobs: 21 }, "top_logprobs", undefined],
    [{ ...hi, tools: [{}] }, "tools[0].type", undefined],
    [{ ...hi, tools: [{ type: "function", function: {} }] }, "tools[0].function.name", undefined],
    [{ ...hi, tool_choice: "any" }, "tool_choice", undefined],
    [{ ...hi, response_format: { type: "xml" } }, "response_format.type", undefined],
    [{ ...hi, functions: [] }, "functions", "functions is not supported; use tools"],
    [{ ...hi, modalities: ["audio"] }, "modalities", undefined],
    [{ ...hi, chat_template_kwargs: { messages: [] } }, "chat_template_kwargs.messages", undefined],
  ])("%j", async (body, param, message) => {
    const error = await refused("/v1/chat/completions", body);
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error", param });
    if (message !== undefined) expect(error["message"]).toBe(message);
    expect(String(error["message"])).not.toContain("\n");
  });
});

describe("other endpoints refuse", () => {
  test.each([
    ["/v1/completions", {}, "prompt"],
    ["/v1/completions", { prompt: "" }, "prompt"],
    ["/v1/completions", { prompt: [] }, "prompt"],
    ["/v1/completions", { prompt: [9999] }, "prompt"],
    ["/v1/completions", { prompt: "x", suffix: "y" }, "suffix"],
    ["/v1/completions", { prompt: "x", best_of: 3 }, "best_of"],
    ["/v1/completions", { prompt: "x", echo: true, logprobs: 1 }, "echo"],
    ["/v1/responses", {}, "input"],
    ["/v1/responses", { input: [] }, "input"],
    ["/v1/responses", { input: "x", background: true }, "background"],
    ["/v1/responses", { input: "x", tools: [{ type: "web_search" }] }, "tools[0].type"],
    ["/v1/embeddings", { input: 5 }, "input"],
    ["/tokenize", {}, "content"],
    ["/detokenize", { tokens: "x" }, "tokens"],
    ["/apply-template", { messages: [] }, "messages"],
  ])("%s %j", async (path, body, param) => {
    expect(await refused(path, body)).toMatchObject({ status: 400, param });
  });
});

describe("a prompt", () => {
  const words = (count: number) => "word ".repeat(count).trim();

  test.each([
    [56, 200],
    [57, 400],
    [600, 400],
  ])("of %i words and 8 tokens around it is %i in a context of 64", async (count, status) => {
    const body = { messages: [user(words(count))], max_tokens: 1, stream: true };
    const response = await served.post("/v1/chat/completions", body);
    expect(response.status).toBe(status);
    if (status === 200) return;
    expect(await response.json()).toMatchObject({
      error: {
        type: "invalid_request_error",
        code: "context_length_exceeded",
        n_prompt_tokens: count + 8,
        n_ctx: 64,
      },
    });
  });
});

describe("a template", () => {
  const template =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}" +
    "{% elif m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}" +
    "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}" +
    "{{ raise_exception('roles must alternate') }}{% endif %}{{ m.content }}{% endfor %}";

  test.each([
    [["system", "user"], "no system role", 0],
    [["user", "user"], "roles must alternate", 1],
    [["assistant"], "roles must alternate", 0],
    [["user", "assistant", "user", "tool"], "no tools", 3],
  ])("that refuses %j is quoted, with the message it means", async (roles, reason, index) => {
    await using strict = await serve({ source: new ScriptedSource("Hello"), template });
    const messages = roles.map((role) => ({ role, content: "x" }));
    const response = await strict.post("/v1/chat/completions", { messages });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: {
        message: `the chat template refused this: ${reason}`,
        param: `messages[${index}]`,
        code: "template_error",
      },
    });
  });
});

describe("what is not known", () => {
  test("works, and is warned of once", async () => {
    const body = { ...hi, a: 1, b: 2, c: 3, d: 4, e: 5 };
    for (const _again of [1, 2]) {
      expect((await served.post("/v1/chat/completions", body)).status).toBe(200);
    }
    expect(served.warnings).toEqual(
      ["a", "b", "c", "d", "e"].map(
        (name) => `/v1/chat/completions: the field ${name} is unknown and has no effect`,
      ),
    );
  });

  test("as a model works under the name of the one there is, unless names are strict", async () => {
    const lenient = await served.post("/v1/chat/completions", { ...hi, model: "gpt-9" });
    expect(await lenient.json()).toMatchObject({ model: "spark" });
    const service = { strictModel: true };
    await using strict = await serve({ source: new ScriptedSource("Hello"), service });
    const response = await strict.post("/v1/chat/completions", { ...hi, model: "gpt-9" });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: "model_not_found" } });
    expect((await strict.post("/v1/chat/completions", { ...hi, model: "spark" })).status).toBe(200);
  });
});

describe("whatever is sent", () => {
  const names = [
    ...["messages", "role", "content", "model", "stream", "tools", "function", "arguments", "n"],
    ...["stop", "response_format", "type", "prompt", "input", "max_tokens", "tool_calls", "system"],
  ];

  /** Any JSON, with names that mean something in it. */
  function anything(random: SeededRandom, depth: number): unknown {
    const pick = <T>(items: readonly T[]) =>
      items[Math.floor(random.between(0, items.length))] as T;
    const leaves = [null, true, 0, -1, 1.5, 1e300, "", "user", "x", "text", "json_object", "😀"];
    if (depth === 0 || random.between(0, 1) < 0.3) return pick(leaves);
    const count = Math.floor(random.between(0, 4));
    const items = Array.from({ length: count }, () => anything(random, depth - 1));
    if (random.between(0, 1) < 0.4) return items;
    return Object.fromEntries(items.map((item) => [pick(names), item]));
  }

  const message = { role: "user", content: "x" };
  const fine = { messages: [message], prompt: "x", input: "x", model: "m", max_tokens: 2 };

  test("is answered, or refused with an error that says why", async () => {
    const random = new SeededRandom(7);
    const paths = [
      ...["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"],
      ...["/api/chat", "/api/generate", "/tokenize", "/detokenize", "/apply-template"],
    ];
    for (let i = 0; i < 450; i++) {
      const path = paths[i % paths.length] ?? "";
      const odd = anything(random, 4);
      const isMixed = i % 2 === 0 && typeof odd === "object" && !Array.isArray(odd);
      const body = isMixed ? { ...fine, ...odd } : odd;
      const response = await served.post(path, body);
      const shown = JSON.stringify({ path, body });
      if (response.status === 200) await response.text();
      else {
        expect({ shown, status: response.status }).toEqual({ shown, status: 400 });
        const { error } = (await response.json()) as { error: { message: string } | string };
        expect(typeof error === "string" ? error : error.message).not.toBe("");
      }
    }
  });
});

describe("messages", () => {
  /** The prompt that some messages become. */
  async function prompt(messages: unknown[]): Promise<unknown> {
    const response = await served.post("/apply-template", { messages });
    return ((await response.json()) as { prompt?: string }).prompt;
  }

  test("of the system at the start are one, and a developer's are the system's", async () => {
    const messages = [
      { role: "system", content: "One." },
      { role: "developer", content: [{ type: "text", text: "Two." }] },
      user("Hi"),
    ];
    expect(await prompt(messages)).toBe(
      "<|im_start|>system\nOne.\n\nTwo.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n" +
        "<|im_start|>assistant\n",
    );
  });

  test("may be parts of text, and an empty answer", async () => {
    const parts = [
      { type: "text", text: "One" },
      { type: "text", text: "two" },
    ];
    expect(await prompt([user(parts), { role: "assistant", content: null }, user("x")])).toBe(
      "<|im_start|>user\nOne\ntwo<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n" +
        "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("never hold marks: what looks like one is plain text", async () => {
    const plain = await served.post("/v1/messages/count_tokens", {
      model: "s",
      messages: [user("<|im_end|>")],
    });
    const { input_tokens: count } = (await plain.json()) as { input_tokens: number };
    expect(count).toBeGreaterThan(12);
  });
});
