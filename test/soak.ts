/**
 * Many clients for a while: they chat, stream, cancel, break off, send garbage and too much.
 * Nothing may crash, hang or grow, and whatever is accepted is answered or properly refused.
 *
 *     bun test/soak.ts [minutes: 2] [clients: 32]
 *
 * It runs `dist/zinc serve` on Mesa's software driver with the model inside. Prints latencies and
 * memory, and ends with code 1 if a promise was broken.
 */
import { cleanUp, ensureBuilt, start } from "./helpers/binary.ts";
import { connect } from "node:net";
import { readFileSync } from "node:fs";

export interface SoakReport {
  readonly requests: number;
  /** How often each ending came: "200", "400", "cancelled", … */
  readonly endings: ReadonlyMap<string, number>;
  readonly broken: readonly string[];
  readonly firstTokenMs: readonly number[];
  readonly interTokenMs: readonly number[];
  /** Of the process, in bytes: when it is warm (a quarter in, or five minutes), and at the end. */
  readonly rssBytes: readonly [number, number];
  readonly deviceBytes: readonly [number, number];
  readonly rssOverTime: readonly number[];
}

type Task = (soak: Soak, random: () => number) => Promise<string>;

class Soak {
  readonly url: string;
  readonly endings = new Map<string, number>();
  readonly broken: string[] = [];
  readonly firstTokenMs: number[] = [];
  readonly interTokenMs: number[] = [];
  /** Of the process, in bytes, twelve times in all. */
  readonly rssOverTime: number[] = [];
  requests = 0;

  constructor(url: string) {
    this.url = url;
  }

  count(ending: string): void {
    this.requests++;
    this.endings.set(ending, (this.endings.get(ending) ?? 0) + 1);
  }

  post(path: string, body: unknown, signal?: AbortSignal): Promise<Response> {
    return fetch(this.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: typeof body === "string" ? body : JSON.stringify(body),
      ...(signal && { signal }),
    });
  }
}

const questions = ["Hello", "Tell me a story about a fox", "What is 2 + 3?", "Who are you?"];

function chat(random: () => number, more: object = {}) {
  const content = questions[Math.floor(random() * questions.length)];
  const max = 4 + Math.floor(random() * 24);
  return { messages: [{ role: "user", content }], max_tokens: max, ...more };
}

/** An answer must be what its status says; being busy is one. */
async function settle(response: Response): Promise<string> {
  const body = (await response.json()) as { choices?: unknown[]; error?: { code?: string } };
  if (response.status === 200 && body.choices?.length !== 1) throw new Error("no answer in a 200");
  if (response.status === 503 && response.headers.get("retry-after") === null) {
    throw new Error("a 503 without Retry-After");
  }
  if (response.status === 200 || response.status === 503) return String(response.status);
  throw new Error(`${response.status} ${JSON.stringify(body)}`);
}

const tasks: readonly Task[] = [
  async (soak, random) => settle(await soak.post("/v1/chat/completions", chat(random))),
  async (soak, random) => {
    const asked = performance.now();
    const body = chat(random, { stream: true });
    const response = await soak.post("/v1/chat/completions", body);
    if (response.status !== 200) return settle(response);
    let [text, last] = ["", 0];
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      text += piece;
      if (!piece.includes('"content":"')) continue;
      const now = performance.now();
      if (last === 0) soak.firstTokenMs.push(now - asked);
      else soak.interTokenMs.push(now - last);
      last = now;
    }
    if (!text.endsWith("data: [DONE]\n\n")) throw new Error(`a stream without end: ${text}`);
    return "streamed";
  },
  async (soak, random) => {
    const schema = { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] };
    const format = { type: "json_schema", json_schema: { name: "a", schema } };
    const body = chat(random, { response_format: format, max_tokens: 30 });
    return settle(await soak.post("/v1/chat/completions", body));
  },
  async (soak, random) => {
    const grammar = 'root ::= ("yes" | "no") "."';
    return settle(await soak.post("/v1/chat/completions", chat(random, { grammar })));
  },
  async (soak, random) => {
    const input = questions.slice(0, 1 + Math.floor(random() * questions.length));
    const response = await soak.post("/v1/embeddings", { input });
    if (response.status !== 200) return settle(response);
    const { data } = (await response.json()) as { data: { embedding: number[] }[] };
    const isWhole =
      data.length === input.length && data.every((one) => one.embedding.length === 256);
    if (!isWhole) throw new Error("embeddings are missing");
    return "embedded";
  },
  async (soak, random) => {
    const controller = new AbortController();
    setTimeout(() => controller.abort(), random() * 800);
    try {
      const body = chat(random, { stream: random() < 0.5, max_tokens: 200 });
      const response = await soak.post("/v1/chat/completions", body, controller.signal);
      await response.text();
      return "done before it was cancelled";
    } catch {
      return "cancelled";
    }
  },
  async (soak, random) => {
    const { port } = new URL(soak.url);
    const socket = connect(Number(port), "127.0.0.1");
    socket.on("error", () => {});
    const text = JSON.stringify(chat(random, { stream: true, max_tokens: 200 }));
    const kept = random() < 0.5 ? text : text.slice(0, Math.floor(text.length * random()));
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n` +
        `content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${kept}`,
    );
    await Bun.sleep(random() * 600);
    if (random() < 0.5) socket.resetAndDestroy();
    else socket.destroy();
    return "broke off";
  },
  async (soak, random) => {
    const garbage = ["", "{", "[]", "null", '{"messages": 5}', '{"messages": [{}]}', "\u0000"];
    const body = garbage[Math.floor(random() * garbage.length)] ?? "";
    const response = await soak.post("/v1/chat/completions", body);
    const { error } = (await response.json()) as { error?: { message?: string } };
    if (response.status !== 400 || !error?.message) throw new Error(`garbage: ${response.status}`);
    return "400";
  },
  async (soak) => {
    const response = await soak.post("/v1/chat/completions", "x".repeat(3 << 20)).catch(() => {});
    await response?.text().catch(() => {});
    if (response !== undefined && response.status !== 413) throw new Error(`${response.status}`);
    return "413";
  },
  async (soak) => {
    const messages = [{ role: "user", content: "word ".repeat(3000) }];
    const response = await soak.post("/v1/chat/completions", { messages });
    const { error } = (await response.json()) as { error?: { code?: string } };
    if (response.status !== 503 && error?.code !== "context_length_exceeded") {
      throw new Error(`too long: ${response.status} ${error?.code}`);
    }
    return "400";
  },
];

/** Serves for some minutes to some clients. */
export async function soak(minutes: number, clientCount: number): Promise<SoakReport> {
  ensureBuilt();
  const args = ["serve", "--port", "0", "-d", "llvmpipe", "-c", "512", "--queue", "16"];
  const child = start([...args, "--log-format", "json"]);
  try {
    const url = await urlOf(child.stderr);
    const run = new Soak(url);
    await ready(url);
    const end = performance.now() + minutes * 60_000;
    const warm = Math.min(minutes * 15_000, 300_000);
    const early = Bun.sleep(warm).then(() => memoryOf(child.pid, url));
    const sampler = setInterval(() => run.rssOverTime.push(rssOf(child.pid)), minutes * 5000);
    await Promise.all(
      Array.from({ length: clientCount }, (_unused, i) => client(run, end, seeded(i + 1))),
    );
    clearInterval(sampler);
    // What was cancelled last is on its way out.
    await Bun.sleep(1000);
    const [before, after] = [await early, await memoryOf(child.pid, url)];
    const health = (await (await fetch(`${url}/health`)).json()) as { running: number };
    if (health.running !== 0) run.broken.push(`${health.running} answers are still being made`);
    return {
      ...run,
      rssBytes: [before.rss, after.rss],
      deviceBytes: [before.device, after.device],
    };
  } finally {
    child.kill("SIGTERM");
    await child.exited;
  }
}

async function client(run: Soak, end: number, random: () => number): Promise<void> {
  while (performance.now() < end) {
    const task = tasks[Math.floor(random() * tasks.length)];
    try {
      run.count((await task?.(run, random)) ?? "nothing");
    } catch (error) {
      run.count("broken");
      run.broken.push(error instanceof Error ? error.message : String(error));
    }
    await Bun.sleep(random() * 300);
  }
}

/** The address that the server says it listens at; what it says later is thrown away. */
async function urlOf(stderr: ReadableStream<Uint8Array>): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  void (async () => {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of stderr) {
      if (text.length < 10_000) text += decoder.decode(chunk, { stream: true });
      const url = /listening on (http:\S+?)\/?\n/.exec(text)?.[1];
      if (url !== undefined) resolve(url);
    }
    reject(new Error(`the server ended: ${text}`));
  })();
  return promise;
}

async function ready(url: string): Promise<void> {
  while ((await fetch(`${url}/health`)).status !== 200) await Bun.sleep(100);
}

async function memoryOf(pid: number, url: string): Promise<{ rss: number; device: number }> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return {
    rss: rssOf(pid),
    device: Number(/^zinc_device_memory_bytes (\d+)/m.exec(text)?.[1]),
  };
}

function rssOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

function print(report: SoakReport): void {
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
  const at = (values: readonly number[]) =>
    [0.5, 0.99].map((share) => `${percentile(values, share).toFixed(0)} ms`).join(" and ");
  const { requests, endings, broken, firstTokenMs, interTokenMs, rssBytes, deviceBytes } = report;
  console.log(`${requests} requests: ${[...endings].map((row) => row.join(" ")).join(", ")}`);
  console.log(`first token, p50 and p99: ${at(firstTokenMs)}`);
  console.log(`token to token, p50 and p99: ${at(interTokenMs)}`);
  console.log(`memory of the process: ${rssBytes.map(megabytes).join(", then ")}`);
  console.log(`on the way: ${report.rssOverTime.map(megabytes).join(", ")}`);
  console.log(`memory of the device: ${deviceBytes.map(megabytes).join(", then ")}`);
  for (const line of new Set(broken)) console.log(`broken: ${line}`);
}

if (import.meta.main) {
  const [minutes = "2", clientCount = "32"] = process.argv.slice(2);
  const report = await soak(Number(minutes), Number(clientCount));
  print(report);
  cleanUp();
  process.exitCode = report.broken.length === 0 ? 0 : 1;
}
