/** The built server with the model inside, as the official clients meet it, and its end. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import Anthropic from "@anthropic-ai/sdk";
import { Ollama } from "ollama";
import OpenAI from "openai";
import { copyFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import {
  cleanUp,
  files,
  noDriver,
  refusal,
  start,
  testTimeoutMs,
  write,
} from "../helpers/binary.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

interface Running {
  readonly child: ReturnType<typeof start>;
  readonly url: string;
  /** What it has said so far. */
  said(): string;
}

const builtinPath = join(import.meta.dir, "../../src/builtin/spark.gguf");
const small = ["-d", "llvmpipe", "-c", "512", "--port", "0"];

/** Starts a server and waits until it serves. */
async function serve(args: readonly string[] = [], env = {}): Promise<Running> {
  const child = start(["serve", ...small, ...args], { env });
  const decoder = new TextDecoder();
  let text = "";
  void (async () => {
    for await (const chunk of child.stderr) text += decoder.decode(chunk, { stream: true });
  })();
  const found = () => /listening on (http:\S+)\/\n/.exec(text)?.[1];
  for (;;) {
    const url = found();
    const isReady = url !== undefined && (await statusOf(`${url}/health`)) === 200;
    if (isReady) return { child, url, said: () => text };
    if (child.exitCode !== null) throw new Error(`the server ended: ${text}`);
    await Bun.sleep(50);
  }
}

async function statusOf(url: string): Promise<number | undefined> {
  return fetch(url).then(
    ({ status }) => status,
    () => undefined,
  );
}

const hi = [{ role: "user" as const, content: "Hello" }];
const greeting = "Hello! How can I help you today?";

function clientOf({ url }: Running, maxRetries = 2): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey: "one", maxRetries });
}

describe.skipIf(noDriver !== undefined)("a running server", () => {
  let running: Running;

  beforeAll(async () => {
    running = await serve(["--alias", "tiny"], { ZINC_TEST_HOOKS: "1" });
  });

  afterAll(() => running.child.kill("SIGKILL"));

  const greedy = { model: "tiny", messages: hi, temperature: 0 };
  const greedyText = { model: "tiny", temperature: 0 };

  test("says the same to every client, streamed or not", async () => {
    const openai = clientOf(running);
    const whole = await openai.chat.completions.create(greedy);
    expect(whole).toMatchObject({ model: "tiny", choices: [{ message: { content: greeting } }] });
    let streamed = "";
    for await (const { choices } of await openai.chat.completions.create({
      ...greedy,
      stream: true,
    })) {
      streamed += choices[0]?.delta.content ?? "";
    }
    expect(streamed).toBe(greeting);
    const anthropic = new Anthropic({ baseURL: running.url, apiKey: "none" });
    const body = { model: "tiny", messages: hi, max_tokens: 64, temperature: 0 };
    expect((await anthropic.messages.create(body)).content).toMatchObject([{ text: greeting }]);
    const ollama = new Ollama({ host: running.url });
    const options = { temperature: 0 };
    const chat = await ollama.chat({ model: "tiny", messages: hi, options });
    expect(chat.message.content).toBe(greeting);
    const prompt = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    const raw = await openai.completions.create({ ...greedyText, prompt, max_tokens: 64 });
    expect(raw.choices[0]?.text).toBe(greeting);
    const one = await openai.completions.create({ ...greedyText, prompt, max_tokens: 1 });
    expect(one).toMatchObject({ choices: [{ text: "Hello" }], usage: { completion_tokens: 1 } });
    const input = { model: "tiny", input: "Hello", temperature: 0 };
    expect((await openai.responses.create(input)).output_text).toBe(greeting);
  });

  test("calls tools, thinks apart, and keeps to a schema", async () => {
    const openai = clientOf(running);
    const parameters = { type: "object", properties: { city: { type: "string" } } };
    const { choices } = await openai.chat.completions.create({
      ...greedy,
      messages: [{ role: "user", content: "What is the weather in Paris?" }],
      tools: [{ type: "function", function: { name: "get_weather", parameters } }],
    });
    expect(choices).toMatchObject([
      {
        finish_reason: "tool_calls",
        message: { tool_calls: [{ function: { arguments: '{"city": "Paris"}' } }] },
      },
    ]);
    const schema = {
      type: "object",
      properties: {
        name: { type: "string", maxLength: 10 },
        age: { type: "integer", minimum: 20 },
      },
      required: ["name", "age"],
    };
    const shaped = await openai.chat.completions.create({
      ...greedy,
      messages: [{ role: "user", content: "Tell me about a fox" }],
      response_format: { type: "json_schema", json_schema: { name: "fox", schema } },
    });
    const fox = JSON.parse(shaped.choices[0]?.message.content ?? "") as { age: number };
    expect(Object.keys(fox)).toEqual(["name", "age"]);
    expect(fox.age).toBeGreaterThanOrEqual(20);
  });

  test("answers by a grammar, in a format beside tools, and with embeddings", async () => {
    const openai = clientOf(running);
    const grammar = { ...greedy, grammar: 'root ::= ("yes" | "no") "!"' };
    const { choices } = await openai.chat.completions.create(grammar);
    expect(["yes!", "no!"]).toContain(choices[0]?.message.content ?? "");
    const parameters = { type: "object", properties: { city: { type: "string" } } };
    const offer = {
      ...greedy,
      tools: [{ type: "function" as const, function: { name: "get_weather", parameters } }],
      response_format: { type: "json_object" as const },
      max_tokens: 60,
    };
    const weather = [{ role: "user" as const, content: "What is the weather in Paris?" }];
    const called = await openai.chat.completions.create({ ...offer, messages: weather });
    expect(called.choices[0]).toMatchObject({ finish_reason: "tool_calls" });
    const said = await openai.chat.completions.create(offer);
    expect(said.choices[0]?.message.content).toStartWith("{");
    const input = ["The fox", "Hello", "The fox"];
    const { data } = await openai.embeddings.create({ model: "tiny", input });
    const [fox, hello, again] = data.map(({ embedding }) => embedding);
    const dot = (one: number[] = [], other: number[] = []) =>
      one.reduce((sum, x, i) => sum + x * (other[i] ?? 0), 0);
    expect(fox).toHaveLength(256);
    expect(dot(fox, fox)).toBeCloseTo(1, 4);
    expect(dot(fox, again)).toBeCloseTo(1, 3);
    expect(dot(fox, hello)).toBeLessThan(0.99);
  });

  test("gives the same seed the same text, also in company, and logprobs that add up", async () => {
    const openai = clientOf(running);
    const body = { model: "tiny", messages: hi, max_tokens: 12, seed: 5, temperature: 1 };
    const ask = async () =>
      (await openai.chat.completions.create(body)).choices[0]?.message.content;
    const alone = await ask();
    expect(await Promise.all([ask(), ask(), ask()])).toEqual([alone, alone, alone]);
    const { choices } = await openai.chat.completions.create({
      ...greedy,
      logprobs: true,
      top_logprobs: 20,
      max_tokens: 1,
    });
    const top = choices[0]?.logprobs?.content?.[0]?.top_logprobs ?? [];
    const sum = top.reduce((total, { logprob }) => total + Math.exp(logprob), 0);
    expect(top).toHaveLength(20);
    expect(sum).toBeGreaterThan(0.9);
    expect(sum).toBeLessThanOrEqual(1.0001);
  });

  test("says the same to the same question, whatever was asked between", async () => {
    const openai = clientOf(running);
    const ask = async (system: string, seed: number) => {
      const messages = [{ role: "system" as const, content: system }, ...hi];
      const body = { model: "tiny", messages, max_tokens: 12, seed, temperature: 1 };
      return (await openai.chat.completions.create(body)).choices[0]?.message.content;
    };
    const first = await ask("Be brief.", 3);
    const other = await ask("Be a pirate.", 3);
    // By now its beginning is in the cache.
    expect(await ask("Be brief.", 3)).toBe(first);
    expect(await ask("Be a pirate.", 3)).toBe(other);
  });

  test.each(["device-lost", "crash", "kill"])("serves again after a %s", async (kind) => {
    const openai = clientOf(running, 0);
    const endless = { ...greedy, stream: true as const, ignore_eos: true };
    const stream = await openai.chat.completions.create(endless as typeof endless);
    let count = 0;
    const read = async () => {
      for await (const _chunk of stream) {
        if (++count !== 3) continue;
        await fetch(`${running.url}/test/calamity`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ kind }),
        });
      }
    };
    const error = await read().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "device_lost" });
    const lost = performance.now();
    while ((await statusOf(`${running.url}/health`)) !== 200) await Bun.sleep(50);
    expect(performance.now() - lost).toBeLessThan(10_000);
    const again = await clientOf(running).chat.completions.create(greedy);
    expect(again.choices[0]?.message.content).toBe(greeting);
  });
});

describe.skipIf(noDriver !== undefined)("a server with several models", () => {
  test("has memory for one at a time, and gives it back when nobody asks", async () => {
    const models = join(files, "several");
    mkdirSync(join(models, "second"), { recursive: true });
    copyFileSync(builtinPath, join(models, "second/second.gguf"));
    const running = await serve(["--idle-unload", "1"], { ZINC_MODELS: models });
    const openai = clientOf(running);
    const deviceBytes = async () => {
      const text = await (await fetch(`${running.url}/metrics`)).text();
      return Number(/^zinc_device_memory_bytes (\d+)$/m.exec(text)?.[1]);
    };
    const before = await deviceBytes();
    const ids = (await openai.models.list()).data.map(({ id }) => id);
    expect(ids).toEqual(["spark", "second"]);
    const ask = (model: string) =>
      openai.chat.completions.create({ model, messages: hi, temperature: 0 });
    const answers = await Promise.all(["spark", "second", "spark", "second"].map(ask));
    expect(answers.map(({ model, choices }) => [model, choices[0]?.message.content])).toEqual(
      ["spark", "second", "spark", "second"].map((model) => [model, greeting]),
    );
    expect(await deviceBytes()).toBe(before);
    while ((await deviceBytes()) !== 0) await Bun.sleep(100);
    expect(await statusOf(`${running.url}/health`)).toBe(200);
    expect(await ask("second")).toMatchObject({ choices: [{ message: { content: greeting } }] });
    expect(await deviceBytes()).toBe(before);
    running.child.kill("SIGTERM");
    expect(await running.child.exited).toBe(143);
  });
});

describe.skipIf(noDriver !== undefined)("the end", () => {
  test("comes when the answers are given; then the exit code is that of the signal", async () => {
    const running = await serve(["--log-format", "json"]);
    const body = { model: "m", messages: hi, temperature: 0, stream: true as const };
    const stream = await clientOf(running).chat.completions.create(body);
    let text = "";
    let count = 0;
    for await (const { choices } of stream) {
      if (count++ === 0) running.child.kill("SIGTERM");
      text += choices[0]?.delta.content ?? "";
    }
    expect(text).toBe(greeting);
    expect(await running.child.exited).toBe(143);
    const line = running
      .said()
      .split("\n")
      .find((one) => one.includes("/v1/chat/completions"));
    expect(JSON.parse(line ?? "")).toMatchObject({ status: 200, promptTokens: 9, finish: "stop" });
  });

  test("comes at once with a second signal", async () => {
    const running = await serve();
    const endless = { model: "m", messages: hi, stream: true as const, ignore_eos: true };
    const stream = await clientOf(running).chat.completions.create(endless);
    const read = (async () => {
      for await (const _chunk of stream);
    })().catch(() => {});
    await Bun.sleep(500);
    running.child.kill("SIGINT");
    await Bun.sleep(200);
    expect(running.child.exitCode).toBeNull();
    running.child.kill("SIGINT");
    expect(await running.child.exited).toBe(130);
    await read;
  });

  test("comes with code 1 if the device is lost and that is wished", async () => {
    const running = await serve(["--exit-on-device-loss"], { ZINC_TEST_HOOKS: "1" });
    await fetch(`${running.url}/test/calamity`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ kind: "device-lost" }),
    }).catch(() => {});
    expect(await running.child.exited).toBe(1);
    expect(running.said()).toContain("the engine was lost");
  });
});

describe.skipIf(noDriver !== undefined)("what is set", () => {
  test("keys come from a file, and an open door is warned of", async () => {
    const file = write("keys", "# those of the team\none\n\ntwo\n");
    const locked = await serve(["--api-key-file", file, "--host", "0.0.0.0"]);
    expect(locked.said()).not.toContain("everybody");
    expect(await statusOf(`${locked.url}/v1/models`)).toBe(401);
    expect((await clientOf(locked).models.list()).data).toHaveLength(1);
    locked.child.kill("SIGTERM");
    expect(await locked.child.exited).toBe(143);
    const open = await serve(["--host", "0.0.0.0"]);
    expect(open.said()).toContain("everybody who reaches 0.0.0.0 can use this server");
    open.child.kill("SIGKILL");
  });

  test("a port that is taken, an empty file of keys and a missing model are errors", async () => {
    using other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const taken = await refusal(1, ["serve", "-d", "llvmpipe", "--port", String(other.port)]);
    expect(taken).toBe(
      `cannot listen on 127.0.0.1:${other.port}: another program listens there; ` +
        "choose another --port",
    );
    const file = write("keys", "\n");
    expect(await refusal(2, ["serve", "--api-key-file", file])).toEndWith(
      "holds no key; write one key a line into it",
    );
    const missing = await refusal(3, ["serve", "--port", "0", "-m", "missing.gguf"]);
    expect(missing).toStartWith("cannot open missing.gguf: no such file");
  });
});
