/** One model at a time: requests that name another one, models that cannot be loaded, and rest. */
import { describe, expect, test } from "bun:test";
import { Ollama } from "ollama";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served, type ServedOptions } from "../helpers/served.ts";

const hi = { messages: [{ role: "user" as const, content: "Hi" }] };

interface Switching extends Served {
  readonly source: ScriptedSource;
  /** What was loaded and closed. */
  readonly engines: string[];
}

async function switching(options: Partial<ServedOptions> = {}): Promise<Switching> {
  const source = new ScriptedSource("word ".repeat(8));
  source.pauseMs = 2;
  const engines: string[] = [];
  const onEngine = (event: string) => void engines.push(event);
  const served = await serve({ source, others: ["other", "broken"], onEngine, ...options });
  return { ...served, source, engines };
}

async function chat(served: Served, model?: string) {
  const response = await served.post("/v1/chat/completions", { ...hi, model });
  const body = (await response.json()) as { model?: string; error?: object };
  return { status: response.status, ...body };
}

describe("a request that names another model", () => {
  test("gets it, once the one before is gone", async () => {
    await using served = await switching();
    expect(await chat(served, "other")).toMatchObject({ status: 200, model: "other" });
    expect(served.engines).toEqual(["load spark.gguf", "close spark.gguf", "load other.gguf"]);
    // Whoever names none takes what is there.
    expect(await chat(served)).toMatchObject({ status: 200, model: "other" });
    expect(await chat(served, "gpt-5")).toMatchObject({ status: 200, model: "other" });
    expect(served.engines).toHaveLength(3);
    expect(await (await served.get("/health")).json()).toMatchObject({ model: "other" });
  });

  test("waits for those who are served, and lets nobody starve", async () => {
    await using served = await switching();
    const ends: string[] = [];
    const ask = async (model: string) => {
      expect(await chat(served, model)).toMatchObject({ status: 200, model });
      ends.push(model);
    };
    const asked = ["spark", "spark", "other", "spark", "other"].map(ask);
    await Promise.all(asked);
    expect(ends).toEqual(["spark", "spark", "other", "other", "spark"]);
    expect(served.engines.filter((event) => event.startsWith("load"))).toEqual([
      "load spark.gguf",
      "load other.gguf",
      "load spark.gguf",
    ]);
  });

  test("is an error if it cannot be loaded, and others are served", async () => {
    await using served = await switching();
    const [broken, good] = await Promise.all([chat(served, "broken"), chat(served, "spark")]);
    expect(good).toMatchObject({ status: 200, model: "spark" });
    expect(broken).toMatchObject({
      status: 500,
      error: {
        code: "model_not_loaded",
        message:
          "the model broken cannot be loaded: it needs 9 GB and there are 4; take a smaller one",
      },
    });
    expect(await (await served.get("/health")).json()).toMatchObject({ model: "spark" });
    expect(await chat(served)).toMatchObject({ status: 200, model: "spark" });
    expect(served.warnings).toEqual([expect.stringContaining("the model broken cannot be loaded")]);
  });

  test("counts among those who wait, and may give up", async () => {
    await using served = await switching({ queueMax: 1 });
    served.source.pauseMs = 30;
    const first = chat(served, "spark");
    await Bun.sleep(30);
    const controller = new AbortController();
    const { signal } = controller;
    const wish = { ...hi, model: "other" };
    const gone = served.post("/v1/chat/completions", wish, { signal }).catch(() => "gone");
    await Bun.sleep(30);
    expect(await (await served.get("/health")).json()).toMatchObject({ running: 1, waiting: 1 });
    controller.abort();
    expect(await gone).toBe("gone");
    expect(await first).toMatchObject({ status: 200 });
    expect(await chat(served, "spark")).toMatchObject({ status: 200, model: "spark" });
    expect(served.engines).toEqual(["load spark.gguf"]);
  });

  test("has no longer than others", async () => {
    await using served = await switching({ service: { timeoutMs: 60 } });
    served.source.pauseMs = 50;
    const first = chat(served, "spark");
    expect(await chat(served, "other")).toMatchObject({ status: 504, error: { code: "timeout" } });
    expect(await first).toMatchObject({ status: 504 });
  });

  test("is refused when the server ends", async () => {
    const served = await switching();
    served.source.pauseMs = 20;
    const first = chat(served, "spark");
    await Bun.sleep(20);
    const waiting = chat(served, "other");
    await Bun.sleep(20);
    const drained = served.server.drain(2000);
    expect(await waiting).toMatchObject({ status: 503, error: { code: "draining" } });
    expect(await first).toMatchObject({ status: 200 });
    await drained;
  });

  test("is refused by its name if names are strict", async () => {
    await using served = await switching({ service: { strictModel: true } });
    expect(await chat(served, "gpt-5")).toMatchObject({
      status: 404,
      error: { code: "model_not_found" },
    });
    expect(await chat(served, "other")).toMatchObject({ status: 200 });
  });
});

describe("the models", () => {
  test("are all listed, and what is known of the one that is loaded", async () => {
    await using served = await switching();
    const list = async () => {
      const { data } = (await (await served.get("/v1/models")).json()) as { data: object[] };
      return data;
    };
    expect(await list()).toMatchObject([
      { id: "spark", loaded: true, meta: { n_ctx: 512 } },
      { id: "other", loaded: false },
      { id: "broken", loaded: false },
    ]);
    const ollama = new Ollama({ host: served.url });
    expect((await ollama.list()).models.map(({ name }) => name)).toEqual([
      "spark",
      "other",
      "broken",
    ]);
    // That is how Ollama's clients load a model.
    await ollama.chat({ model: "other", messages: [] });
    expect((await ollama.ps()).models).toMatchObject([{ name: "other" }]);
    expect(await list()).toMatchObject([{ loaded: false }, { loaded: true }, {}]);
    expect(await ollama.show({ model: "spark" })).toMatchObject({ model_info: {} });
    const shown = await ollama.show({ model: "other" });
    expect(shown).toMatchObject({ model_info: { "general.architecture": "llama" } });
    const count = { model: "spark", messages: hi.messages, max_tokens: 1 };
    expect((await served.post("/v1/messages/count_tokens", count)).status).toBe(200);
    expect(await list()).toMatchObject([{ loaded: true }, { loaded: false }, {}]);
    expect((await served.get("/v1/models/other")).status).toBe(200);
    expect((await served.get("/v1/models/none")).status).toBe(404);
  });
});

describe("a model that nobody asks for", () => {
  test("is unloaded, and loaded for the next request", async () => {
    await using served = await switching({ idleMs: 60 });
    expect(await chat(served)).toMatchObject({ status: 200 });
    await Bun.sleep(150);
    expect(served.engines).toEqual(["load spark.gguf", "close spark.gguf"]);
    const health = await served.get("/health");
    expect([health.status, await health.json()]).toMatchObject([200, { status: "unloaded" }]);
    const metrics = async () => (await served.get("/metrics")).text();
    expect(await metrics()).toContain("zinc_device_memory_bytes 0\n");
    // Who looks does not wake it.
    expect((await served.get("/props")).status).toBe(200);
    expect(served.engines).toHaveLength(2);
    const answers = await Promise.all([chat(served), chat(served)]);
    expect(answers).toMatchObject([{ status: 200 }, { status: 200 }]);
    expect(served.engines).toHaveLength(3);
    expect(await metrics()).toContain("zinc_device_memory_bytes 1000\n");
    const tokens = await served.post("/tokenize", { content: "The fox" });
    expect(tokens.status).toBe(200);
  });

  test("stays while somebody looks at numbers, but not because of it", async () => {
    await using served = await switching({ idleMs: 80 });
    for (let i = 0; i < 8; i++) {
      await served.get("/metrics");
      await Bun.sleep(20);
    }
    expect(served.engines).toEqual(["load spark.gguf", "close spark.gguf"]);
  });

  test("is woken by a text to tokenize", async () => {
    await using served = await switching({ idleMs: 30 });
    await Bun.sleep(80);
    const response = await served.post("/tokenize", { content: "The fox" });
    expect(response.status).toBe(200);
    expect(served.engines).toHaveLength(3);
  });
});

test("/live is 200 from the start", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await using served = await switching({ loading: promise });
  expect((await served.get("/health")).status).toBe(503);
  expect((await served.get("/live")).status).toBe(200);
  resolve();
});
