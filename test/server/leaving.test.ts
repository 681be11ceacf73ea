/** Clients that go away: in every phase their share is free at once, and nobody else notices. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served } from "../helpers/served.ts";

const source = new ScriptedSource("word ".repeat(400), 2);
let served: Served;

beforeAll(async () => {
  served = await serve({ source });
});

afterAll(() => served.server.close());

/** A client on a bare socket. */
async function ask(body: object): Promise<Socket> {
  const { port } = new URL(served.url);
  const socket = connect(Number(port), "127.0.0.1");
  socket.on("error", () => {});
  const text = JSON.stringify({ messages: [{ role: "user", content: "Hi" }], ...body });
  const head = [
    "POST /v1/chat/completions HTTP/1.1",
    `host: 127.0.0.1:${port}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(text)}`,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${text}`);
  return socket;
}

async function until(holds: () => boolean, ms = 1000): Promise<void> {
  const end = performance.now() + ms;
  while (!holds()) {
    if (performance.now() > end) throw new Error(`not within ${ms} ms`);
    await Bun.sleep(5);
  }
}

async function cancelledCount(): Promise<number> {
  const text = await (await served.get("/metrics")).text();
  return Number(/^zinc_requests_cancelled_total (\d+)$/m.exec(text)?.[1]);
}

const ways = [
  ["says goodbye (FIN)", (socket: Socket) => void socket.end()],
  ["breaks off (RST)", (socket: Socket) => void socket.resetAndDestroy()],
] as const;

describe.each(ways)("a client that %s", (_name, leave) => {
  test.each([
    ["in a stream", { stream: true }, 0, 5],
    ["while it waits for the whole answer", {}, 0, 5],
    ["while its prompt is read", { stream: true }, 5000, 0],
    ["while its prompt is read, without a stream", {}, 5000, 0],
  ])("%s frees its place", async (_phase, body, prefillMs, pauseMs) => {
    const before = await cancelledCount();
    source.prefillMs = prefillMs;
    source.pauseMs = pauseMs;
    const socket = await ask(body);
    await until(() => source.activeCount === 1);
    leave(socket);
    await until(() => source.activeCount === 0 && served.host.jobCount === 0);
    await until(() => served.log.at(-1)?.status === 499);
    expect(await cancelledCount()).toBe(before + 1);
  });
});

describe.each(ways)("a client in the queue that %s", (_name, leave) => {
  test("is never served", async () => {
    source.prefillMs = 0;
    source.pauseMs = 5;
    const running = [await ask({ stream: true }), await ask({ stream: true })];
    await until(() => source.activeCount === 2);
    const begun = source.begun.length;
    const waiting = await ask({});
    await until(() => served.host.waitingCount === 1);
    leave(waiting);
    await until(() => served.host.waitingCount === 0);
    for (const socket of running) socket.destroy();
    await until(() => served.host.jobCount === 0);
    expect(source.begun).toHaveLength(begun);
  });
});

describe("others", () => {
  test("are not touched when one leaves, and their answers are whole", async () => {
    const script = "one two three four five six seven eight nine ten";
    source.script = () => script;
    source.prefillMs = 0;
    source.pauseMs = 10;
    const body = { messages: [{ role: "user", content: "Hi" }] };
    const others = [1, 2, 3].map(async () => {
      const response = await served.post("/v1/chat/completions", body);
      const { choices } = (await response.json()) as {
        choices: { message: { content: string } }[];
      };
      return choices[0]?.message.content;
    });
    const leaving = [await ask({ stream: true }), await ask({})];
    await Bun.sleep(30);
    for (const socket of leaving) socket.destroy();
    expect(await Promise.all(others)).toEqual([script, script, script]);
  });
});
