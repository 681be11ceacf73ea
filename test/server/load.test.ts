/** Many clients at once, slow answers, and an end that leaves nobody hanging. */
import { describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { refusal } from "../helpers/refusal.ts";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served } from "../helpers/served.ts";

const hi = { messages: [{ role: "user" as const, content: "Hi" }] };

function clientOf(served: Served, maxRetries = 0): OpenAI {
  return new OpenAI({ baseURL: `${served.url}/v1`, apiKey: "none", maxRetries });
}

async function health(served: Served) {
  const response = await served.get("/health");
  return { code: response.status, ...((await response.json()) as object) };
}

describe("while the model loads", () => {
  test("/health says so, and requests are to come again", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    await using served = await serve({ source: new ScriptedSource("Hello"), loading: promise });
    expect(await health(served)).toMatchObject({ code: 503, status: "loading", progress: 0 });
    const response = await served.post("/v1/chat/completions", hi);
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("2");
    expect(await response.json()).toMatchObject({
      error: { type: "unavailable_error", code: "loading" },
    });
    expect((await served.get("/v1/models")).status).toBe(200);
    resolve();
    await served.host.loaded;
    expect(await health(served)).toMatchObject({ code: 200, status: "ready", context: 512 });
  });
});

describe("a full queue", () => {
  test("refuses with 503 and Retry-After, which clients keep to", async () => {
    const source = new ScriptedSource("word ".repeat(40), 1);
    source.pauseMs = 5;
    await using served = await serve({ source, queueMax: 1 });
    const first = [1, 2].map(() => served.post("/v1/chat/completions", hi));
    await Bun.sleep(50);
    expect(await health(served)).toMatchObject({ running: 1, waiting: 1 });
    const response = await served.post("/v1/chat/completions", hi);
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toBe("2");
    expect(await response.json()).toMatchObject({ error: { code: "overloaded" } });
    const retried = await clientOf(served, 2).chat.completions.create({ model: "s", ...hi });
    expect(retried.choices).toHaveLength(1);
    for (const answer of first) expect((await answer).status).toBe(200);
  });

  test("takes all choices of a request or none", async () => {
    await using served = await serve({ source: new ScriptedSource("Hello", 1), queueMax: 1 });
    expect((await served.post("/v1/chat/completions", { ...hi, n: 3 })).status).toBe(503);
    expect((await served.post("/v1/chat/completions", { ...hi, n: 2 })).status).toBe(200);
  });
});

describe("a deadline", () => {
  test("ends a request with 504, which clients do not repeat", async () => {
    const source = new ScriptedSource("word ".repeat(400));
    source.pauseMs = 5;
    await using served = await serve({ source, service: { timeoutMs: 100 } });
    const error = await refusal(clientOf(served, 2).chat.completions.create({ model: "s", ...hi }));
    expect(error).toMatchObject({ status: 504, code: "timeout", type: "timeout_error" });
    expect(source.begun).toHaveLength(1);
    expect(source.activeCount).toBe(0);
  });

  test("ends a stream with an error that clients raise", async () => {
    const source = new ScriptedSource("word ".repeat(400));
    source.pauseMs = 5;
    await using served = await serve({ source, service: { timeoutMs: 100 } });
    const body = { model: "s", ...hi, stream: true as const };
    const stream = await clientOf(served).chat.completions.create(body);
    let text = "";
    const read = async () => {
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
    };
    expect(await refusal(read())).toMatchObject({ code: "timeout" });
    expect(text).toStartWith("word word");
  });
});

describe("a stream", () => {
  test("that is silent is kept alive by pings", async () => {
    const source = new ScriptedSource("Hello");
    source.prefillMs = 200;
    await using served = await serve({ source, service: { pingMs: 50 } });
    const response = await served.post("/v1/chat/completions", { ...hi, stream: true });
    const text = await response.text();
    expect(text.match(/^: ping$/gm)?.length).toBeGreaterThan(1);
    expect(text).toEndWith("data: [DONE]\n\n");
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(response.headers.get("x-accel-buffering")).toBe("no");
  });

  test("that fails in the middle ends with an error and without [DONE]", async () => {
    const source = new ScriptedSource("one two three four");
    source.failure = { at: 2, error: new Error("a broken engine") };
    await using served = await serve({ source });
    const response = await served.post("/v1/chat/completions", { ...hi, stream: true });
    const text = await response.text();
    expect(text).toContain('"delta":{"content":"one"}');
    expect(text).not.toContain("[DONE]");
    expect(text).toEndWith(
      'data: {"error":{"message":"a bug in zinc: a broken engine","type":"server_error",' +
        '"param":null,"code":"engine_error"}}\n\n',
    );
    const body = { model: "s", ...hi, stream: true as const };
    const stream = await clientOf(served).chat.completions.create(body);
    const read = async () => {
      for await (const _chunk of stream);
    };
    expect(await refusal(read())).toMatchObject({ code: "engine_error" });
  });

  test("to a slow reader is whole", async () => {
    await using served = await serve({ source: new ScriptedSource("😀歪".repeat(30)) });
    const response = await served.post("/v1/completions", {
      prompt: "x",
      stream: true,
      max_tokens: 400,
    });
    let text = "";
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      await Bun.sleep(1);
    }
    const pieces = [...text.matchAll(/"text":"([^"]*)"/g)].map(([, piece]) => piece);
    expect(pieces.join("")).toBe("😀歪".repeat(30));
  });
});

describe("the end", () => {
  test("waits for those who are there, and takes nobody new", async () => {
    const source = new ScriptedSource("word ".repeat(30));
    source.pauseMs = 5;
    const served = await serve({ source });
    const running = served.post("/v1/chat/completions", { ...hi, stream: true });
    await Bun.sleep(50);
    const drained = served.server.drain(5000);
    expect(await health(served)).toMatchObject({ code: 503, status: "draining" });
    const late = await served.post("/v1/chat/completions", hi);
    expect(late.status).toBe(503);
    expect(await late.json()).toMatchObject({ error: { code: "draining" } });
    expect(await (await running).text()).toEndWith("data: [DONE]\n\n");
    await drained;
    expect(await refusal(served.get("/health"))).toBeInstanceOf(Error);
  });

  test("does not wait for ever", async () => {
    const source = new ScriptedSource("word ".repeat(400));
    source.pauseMs = 20;
    const served = await serve({ source });
    const running = served.post("/v1/chat/completions", hi);
    await Bun.sleep(50);
    await served.server.drain(100);
    expect((await running).status).toBe(503);
  });
});

describe("a lost device", () => {
  test("fails the requests in flight alone, and the server serves again", async () => {
    const source = new ScriptedSource("word ".repeat(100));
    source.pauseMs = 5;
    await using served = await serve({ source });
    const stream = served.post("/v1/chat/completions", { ...hi, stream: true });
    const whole = served.post("/v1/chat/completions", hi);
    await Bun.sleep(60);
    served.host.suffer("device-lost");
    expect(await (await stream).text()).toContain('"code":"device_lost"');
    expect((await whole).status).toBe(500);
    await Bun.sleep(20);
    source.pauseMs = 0;
    const after = await clientOf(served, 5).chat.completions.create({ model: "s", ...hi });
    expect(after.choices[0]?.message.content).toStartWith("word");
    expect(await health(served)).toMatchObject({ code: 200, status: "ready" });
    const text = await (await served.get("/metrics")).text();
    expect(text).toContain("zinc_engine_restarts_total 1\n");
  });

  test("is noticed when a step fails, too", async () => {
    const source = new ScriptedSource("one two three four");
    source.failure = { at: 2, error: new Error("device lost") };
    await using served = await serve({ source });
    const response = await served.post("/v1/chat/completions", hi);
    expect(await response.json()).toMatchObject({ error: { code: "device_lost" } });
    source.failure = undefined;
    await Bun.sleep(20);
    const after = await clientOf(served, 5).chat.completions.create({ model: "s", ...hi });
    expect(after.choices[0]?.message.content).toBe("one two three four");
  });
});
