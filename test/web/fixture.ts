/**
 * A server of OpenAI's shapes whose answers are scripted by the first word of what the user says,
 * and which serves the page: what the page's tests talk to instead of an engine.
 */
import { page } from "../../src/web/page.ts";

export interface Fixture {
  readonly url: string;
  /** Bodies of all chat requests, oldest first. */
  readonly requests: RequestBody[];
  /** Models that it was asked to load. */
  readonly loads: string[];
  /** Requests that the page made and no part of the fixture knows. */
  readonly unknown: string[];
  /** How many clients left before their answer was complete. */
  readonly leftCount: () => number;
  /** Answers 503 as a server does that loads a model; undefined: it is ready. */
  setLoading(progress: number | undefined): void;
  /** Requests without this key are refused; undefined: none is asked for. */
  setKey(key: string | undefined): void;
  stop(): Promise<void>;
}

export interface RequestBody {
  readonly model?: string;
  readonly messages: readonly {
    readonly role: string;
    readonly content: string;
    readonly tool_calls?: readonly Readonly<Record<string, unknown>>[];
    readonly tool_call_id?: string;
  }[];
  readonly [parameter: string]: unknown;
}

interface Step {
  /** Before it is sent. */
  readonly waitMs?: number;
  readonly delta?: Record<string, unknown>;
  readonly finish?: string;
  readonly event?: unknown;
  readonly breaks?: boolean;
}

export const markdownText = `## A table and some code

Galvanised *steel* keeps for **decades**, and \`zinc\` is why:

| coating | years | price |
| :-- | --: | :-: |
| paint | 7 | low |
| zinc | 50 | fair |

1. It is less noble than iron.
2. So it goes first.
   - slowly

\`\`\`python
def corrode(layer: float, rate: float = 0.002) -> float:
    # micrometres to years
    return layer / rate if rate > 0 else float("inf")
\`\`\`

> It gives itself up for the iron beneath.

See [the table](https://example.org/zinc) ![a map](https://example.org/map.png)
<script>alert(1)</script> <img src=x onerror=alert(1)>
`;

const words = (text: string, waitMs: number): Step[] =>
  (text.match(/\S+\s*|\s+/g) ?? []).map((content) => ({ waitMs, delta: { content } }));

const scripts: Readonly<Record<string, (body: RequestBody) => Step[]>> = {
  slow: () => words("one two three four five six seven eight nine ten ".repeat(20), 25),
  think: () => [
    ...words("The user wants to know. So I weigh it.", 5).map(({ waitMs = 0, delta }) => ({
      waitMs,
      delta: { reasoning_content: delta?.["content"] },
    })),
    ...words("It is so.", 5),
    { finish: "stop" },
  ],
  tool: ({ messages }) => {
    const result = messages.at(-1);
    if (result?.role === "tool") {
      return [...words(`It is ${result.content} there.`, 2), { finish: "stop" }];
    }
    const call = (fields: Record<string, unknown>) => ({ tool_calls: [{ index: 0, ...fields }] });
    const start = { id: "call_7", type: "function", function: { name: "weather", arguments: "" } };
    return [
      { delta: call(start) },
      { delta: call({ function: { arguments: '{"city":' } }) },
      { delta: call({ function: { arguments: '"Essen","days":2}' } }) },
      { finish: "tool_calls" },
    ];
  },
  markdown: () => [...words(markdownText, 3), { finish: "stop" }],
  cut: () => [...words("As long as", 2), { finish: "length" }],
  break: () => [...words("Half of the", 5), { waitMs: 30, breaks: true }],
  fault: () => [
    ...words("Some words", 5),
    { event: { error: { message: "the device was lost", type: "server_error" } } },
  ],
};

/** Counts how often it was asked the same, so that answers to it can be told apart. */
function plain({ messages }: RequestBody, time: number): Step[] {
  const said = messages.at(-1)?.content ?? "";
  return [...words(`Answer ${time} to “${said}”.`, 4), { finish: "stop" }];
}

export function startFixture(): Fixture {
  const requests: RequestBody[] = [];
  const loads: string[] = [];
  const unknown: string[] = [];
  let leftCount = 0;
  let loading: number | undefined;
  let key: string | undefined;
  let tokens = 0;
  const api = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname === "/health") {
      return loading === undefined
        ? Response.json({ status: "ready" })
        : Response.json({ status: "loading", progress: loading }, { status: 503 });
    }
    if (key !== undefined && request.headers.get("authorization") !== `Bearer ${key}`) {
      return errorOf(401, "the API key is missing or wrong");
    }
    if (pathname === "/v1/models") return Response.json(models);
    if (pathname === "/props") return Response.json(props);
    if (pathname === "/metrics") {
      tokens += 60 + 25 * Math.sin(tokens / 90);
      return new Response(metricsText(Math.round(tokens)));
    }
    if (pathname === "/api/chat") {
      const { model } = (await request.json()) as { model: string };
      loads.push(model);
      return Response.json({ model, done: true });
    }
    if (pathname !== "/v1/chat/completions") {
      unknown.push(pathname);
      return errorOf(404, `no such path: ${pathname}`);
    }
    const body = (await request.json()) as RequestBody;
    requests.push(body);
    const [first = ""] = lastSaid(body).split(/\s/);
    if (first === "refuse") return errorOf(400, "roles must alternate: message 3 is of user again");
    const time = requests.filter((other) => lastSaid(other) === lastSaid(body)).length;
    const steps = scripts[first]?.(body) ?? plain(body, time);
    return streamOf(steps, body, () => leftCount++);
  };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    fetch: (request) => page(request) ?? api(request),
  });
  return {
    url: server.url.href,
    requests,
    loads,
    unknown,
    leftCount: () => leftCount,
    setLoading: (progress) => (loading = progress),
    setKey: (next) => (key = next),
    stop: () => server.stop(true),
  };
}

function lastSaid({ messages }: RequestBody): string {
  return messages.findLast(({ role }) => role === "user")?.content ?? "";
}

function streamOf(steps: readonly Step[], body: RequestBody, onLeft: () => void): Response {
  const encoder = new TextEncoder();
  let isOver = false;
  const stream = new ReadableStream<Uint8Array>({
    async start(controller) {
      const send = (data: unknown) => {
        if (!isOver) controller.enqueue(encoder.encode(`data: ${JSON.stringify(data)}\n\n`));
      };
      const chunk = (delta: unknown, finish: string | null) => ({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        model: body.model ?? "spark",
        choices: [{ index: 0, delta, finish_reason: finish }],
      });
      send(chunk({ role: "assistant", content: "" }, null));
      for (const { waitMs = 0, delta, finish, event, breaks } of steps) {
        if (waitMs > 0) await Bun.sleep(waitMs);
        if (isOver) return;
        if (breaks === true) {
          isOver = true;
          controller.close();
          return;
        }
        send(event ?? chunk(delta ?? {}, finish ?? null));
      }
      const count = steps.filter(({ delta }) => delta !== undefined).length;
      send({ choices: [], usage: { prompt_tokens: 21, completion_tokens: count } });
      if (isOver) return;
      isOver = true;
      controller.enqueue(encoder.encode("data: [DONE]\n\n"));
      controller.close();
    },
    cancel() {
      if (!isOver) onLeft();
      isOver = true;
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}

function errorOf(status: number, message: string): Response {
  const error = { message, type: "invalid_request_error", param: null, code: null };
  return Response.json({ error }, { status });
}

const models = {
  object: "list",
  data: [
    { id: "spark", object: "model", meta: { architecture: "llama", n_ctx: 2048 } },
    { id: "qwen3.5-35b-a3b-ud-q4_k_xl", object: "model", loaded: false },
  ],
};

const props = {
  n_ctx: 2048,
  default_generation_settings: {
    temperature: 0.8,
    top_p: 0.95,
    top_k: 40,
    min_p: 0.05,
    repeat_penalty: 1,
  },
  device: { name: "llvmpipe", bytes: 21_000_000_000 },
};

function metricsText(tokens: number): string {
  return [
    "# TYPE zinc_inter_token_latency_seconds histogram",
    `zinc_inter_token_latency_seconds_bucket{le="+Inf"} ${tokens}`,
    `zinc_inter_token_latency_seconds_count ${tokens}`,
    "# TYPE zinc_device_memory_bytes gauge",
    `zinc_device_memory_bytes ${21_000_000_000 + tokens * 1_000_000}`,
    "",
  ].join("\n");
}
