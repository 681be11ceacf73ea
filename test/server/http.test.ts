/** What every endpoint has in common: paths, methods, keys, hosts, origins and bodies. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served } from "../helpers/served.ts";

let served: Served;

beforeAll(async () => {
  served = await serve({ source: new ScriptedSource("Hello") });
});

afterAll(() => served.server.close());

const hi = { messages: [{ role: "user", content: "Hi" }] };

async function errorOf(response: Response): Promise<Record<string, unknown>> {
  expect(response.headers.get("content-type")).toStartWith("application/json");
  return ((await response.json()) as { error: Record<string, unknown> }).error;
}

describe("paths", () => {
  test.each(["/v1/models", "/v1//models", "/v1/models/", "//v1/models/"])(
    "%s is one",
    async (path) => {
      expect((await served.get(path)).status).toBe(200);
    },
  );

  test("that lead nowhere are 404, as JSON", async () => {
    for (const path of ["/v2/models", "/v1", "/constructor", "/v1/chat"]) {
      const response = await served.get(path);
      expect(response.status).toBe(404);
      expect(await errorOf(response)).toMatchObject({ type: "not_found_error", code: "not_found" });
    }
  });

  test("of unknown models are 404, however they are spelled", async () => {
    for (const id of ["a%2Fb", "a/b", "%", "toString"]) {
      const response = await served.get(`/v1/models/${id}`);
      expect(response.status).toBe(404);
      expect(await errorOf(response)).toMatchObject({ code: "model_not_found", param: "model" });
    }
  });
});

describe("methods", () => {
  test("that are not possible are 405 and named", async () => {
    const response = await served.get("/v1/chat/completions");
    expect(response.status).toBe(405);
    expect(response.headers.get("allow")).toBe("POST, OPTIONS");
    expect(await errorOf(response)).toMatchObject({ code: "method_not_allowed" });
    expect((await served.post("/v1/models", {})).status).toBe(405);
  });

  test("HEAD is GET without a body, and OPTIONS says what there is", async () => {
    const head = await served.get("/v1/models", { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe("");
    const options = await served.get("/v1/models", { method: "OPTIONS" });
    expect(options.status).toBe(204);
    expect(options.headers.get("allow")).toBe("GET, OPTIONS, HEAD");
  });
});

describe("bodies", () => {
  test.each([
    ["", "the body is empty; it must be a JSON object"],
    ["{", "the body is not JSON"],
    ["[]", "the body must be a JSON object"],
    ["null", "the body must be a JSON object"],
    ["\u0000", "the body is not JSON"],
  ])("like %j are 400", async (body, message) => {
    const response = await served.post("/v1/chat/completions", body);
    expect(response.status).toBe(400);
    expect(await errorOf(response)).toMatchObject({ message, type: "invalid_request_error" });
  });

  test("that are nested without end, or no UTF-8, are 400", async () => {
    const deep = await served.post("/v1/chat/completions", "[".repeat(200_000));
    expect(deep.status).toBe(400);
    const bytes = Uint8Array.of(0x7b, 0xff, 0x7d);
    const init = { body: bytes, headers: { "content-type": "application/json" } };
    const broken = await served.get("/tokenize", { method: "POST", ...init });
    expect(await errorOf(broken)).toMatchObject({ message: "the body is not UTF-8" });
  });

  test("of another type are 415 from browsers, so that no form on a page sends one", async () => {
    const headers = { "content-type": "text/plain", "sec-fetch-site": "none" };
    const response = await served.post("/v1/chat/completions", hi, { headers });
    expect(response.status).toBe(415);
  });

  test("may have any type from programs, for that is how curl sends them", async () => {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const response = await served.post("/tokenize", { content: "Hi" }, { headers });
    expect(response.status).toBe(200);
  });

  test("that are too large are 413, declared or in chunks, and the server lives", async () => {
    const large = JSON.stringify({ messages: [{ role: "user", content: "x".repeat(1 << 21) }] });
    const declared = await served.post("/v1/chat/completions", large);
    expect(declared.status).toBe(413);
    expect(await errorOf(declared)).toMatchObject({ code: "body_too_large" });
    const body = new ReadableStream({
      async start(controller) {
        for (let i = 0; i < 32; i++) controller.enqueue(new Uint8Array(1 << 16).fill(0x20));
        controller.close();
      },
    });
    const headers = { "content-type": "application/json" };
    const chunked = await served.get("/v1/completions", { method: "POST", body, headers });
    expect(chunked.status).toBe(413);
    expect((await served.get("/health")).status).toBe(200);
  });
});

describe("hosts", () => {
  test.each(["localhost", "127.0.0.1:80", "127.1.2.3", "[::1]:9", "zinc.localhost:8080"])(
    "%s is this machine",
    async (host) => {
      expect((await served.get("/v1/models", { headers: { host } })).status).toBe(200);
    },
  );

  test.each(["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.0.1"])(
    "%s is not, and refused",
    async (host) => {
      const response = await served.get("/v1/models", { headers: { host } });
      expect(response.status).toBe(403);
      expect(await errorOf(response)).toMatchObject({
        type: "permission_error",
        code: "forbidden_host",
      });
    },
  );
});

describe("origins", () => {
  test("of other pages are refused, its own is not", async () => {
    for (const origin of ["http://evil.example", "null", "http://localhost:1", "https://[", ""]) {
      if (origin === "") continue;
      const response = await served.get("/v1/models", { headers: { origin } });
      expect(response.status).toBe(403);
      expect(response.headers.get("access-control-allow-origin")).toBeNull();
      expect(await errorOf(response)).toMatchObject({ code: "forbidden_origin" });
    }
    const own = await served.get("/v1/models", { headers: { origin: served.url } });
    expect(own.status).toBe(200);
  });

  test("that are allowed may send and read, and no others", async () => {
    const origins = ["http://app.example"];
    await using open = await serve({ source: new ScriptedSource(), access: { origins } });
    const headers = {
      origin: "http://app.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "x-custom",
    };
    const preflight = await open.get("/v1/completions", { method: "OPTIONS", headers });
    expect(preflight.status).toBe(204);
    expect(Object.fromEntries(preflight.headers)).toMatchObject({
      "access-control-allow-origin": "http://app.example",
      "access-control-allow-methods": "POST, OPTIONS",
      "access-control-allow-headers": "x-custom",
      vary: "Origin",
    });
    const failed = await open.post("/v1/completions", {}, { headers: { origin: headers.origin } });
    expect(failed.status).toBe(400);
    expect(failed.headers.get("access-control-allow-origin")).toBe("http://app.example");
    const other = await open.get("/v1/models", { headers: { origin: "http://b.example" } });
    expect(other.status).toBe(403);
  });
});

describe("keys", () => {
  let locked: Served;

  beforeAll(async () => {
    const access = { keys: ["one", "two"] };
    locked = await serve({ source: new ScriptedSource("Hello"), access });
  });

  afterAll(() => locked.server.close());

  test("that are missing or wrong are 401, in the shape of each API", async () => {
    for (const headers of [{}, { authorization: "Bearer three" }, { authorization: "Basic one" }]) {
      const response = await locked.get("/v1/models", { headers });
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
      expect(await errorOf(response)).toMatchObject({
        type: "authentication_error",
        code: "invalid_api_key",
      });
    }
    const anthropic = await locked.post("/v1/messages", {});
    expect(await anthropic.json()).toMatchObject({
      type: "error",
      error: { type: "authentication_error" },
    });
    expect(await (await locked.post("/api/chat", {})).json()).toMatchObject({
      error: "a valid API key is needed",
    });
  });

  test("that are right open the door, by either header", async () => {
    for (const headers of [{ authorization: "Bearer two" }, { "x-api-key": "one" }]) {
      expect((await locked.get("/v1/models", { headers })).status).toBe(200);
    }
    expect(locked.log.map((entry) => JSON.stringify(entry)).join()).not.toContain("two");
  });

  test("are asked for at /metrics and /props, not at /health", async () => {
    expect((await locked.get("/metrics")).status).toBe(401);
    expect((await locked.get("/props")).status).toBe(401);
    expect((await locked.get("/health")).status).toBe(200);
  });
});

describe("the page", () => {
  test("is served at / with a policy that lets nothing in", async () => {
    const page = (request: Request) =>
      new URL(request.url).pathname === "/"
        ? new Response("<p>", { headers: { "content-type": "text/html" } })
        : undefined;
    await using paged = await serve({ source: new ScriptedSource(), page });
    const response = await paged.get("/");
    expect(await response.text()).toBe("<p>");
    expect(response.headers.get("content-security-policy")).toStartWith("default-src 'none'");
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    expect((await paged.get("/other")).status).toBe(404);
  });

  test("without one, / says what runs here", async () => {
    expect(await (await served.get("/")).text()).toBe("zinc is running; its API is at /v1\n");
  });
});

describe("what the server says of itself", () => {
  test("is in /props", async () => {
    expect(await (await served.get("/props")).json()).toMatchObject({
      model: "spark",
      n_ctx: 512,
      n_vocab: 4096,
      total_slots: 4,
      default_generation_settings: { temperature: 0.8, top_k: 40 },
    });
  });

  test("is in /metrics, as numbers", async () => {
    await served.post("/v1/chat/completions", hi);
    const text = await (await served.get("/metrics")).text();
    for (const line of [
      "zinc_ready 1",
      'zinc_requests_total{route="/v1/chat/completions",status="200"} 1',
      "zinc_generated_tokens_total 1",
      "zinc_prompt_tokens_total 9",
      "zinc_time_to_first_token_seconds_count 1",
      "zinc_device_memory_bytes 1000",
      "zinc_engine_restarts_total 0",
      "zinc_cache_blocks_free 5",
      "zinc_engine_rows_total 6",
      "zinc_draft_tokens_total 8",
      "zinc_accepted_draft_tokens_total 5",
    ]) {
      expect(text).toContain(`${line}\n`);
    }
  });

  test("is a line a request in the log, with an id that the client has too", async () => {
    const secret = "a secret of the user";
    const body = { messages: [{ role: "user", content: secret }], model: secret };
    const response = await served.post("/v1/chat/completions", body);
    await response.text();
    const entry = served.log.at(-1);
    expect(entry).toMatchObject({ method: "POST", status: 200, tokens: 1, finish: "stop" });
    expect(entry?.id).toBe(response.headers.get("x-request-id") ?? "");
    await served.post("/v1/chat/completions", { messages: secret, [secret]: 1 });
    expect(JSON.stringify(served.log)).not.toContain(secret);
  });
});

test("tokens, texts and prompts can be looked at", async () => {
  const tokens = (await (await served.post("/tokenize", { content: "Hello there" })).json()) as {
    tokens: number[];
  };
  const text = await (await served.post("/detokenize", tokens)).json();
  expect(text).toEqual({ content: "Hello there" });
  const special = { content: "<|im_end|>", special: true };
  const { tokens: ids } = (await (await served.post("/tokenize", special)).json()) as {
    tokens: number[];
  };
  expect(ids).toHaveLength(1);
  expect(await (await served.post("/apply-template", hi)).json()).toEqual({
    prompt: "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
  });
  const foreign = await served.post("/detokenize", { tokens: [9999] });
  expect(foreign.status).toBe(400);
});
