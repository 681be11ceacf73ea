/** Requests as sockets carry them: byte by byte, in chunks, several in a row, with expectations. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { ScriptedSource } from "../helpers/scripted-source.ts";
import { serve, type Served } from "../helpers/served.ts";

let served: Served;

beforeAll(async () => {
  served = await serve({ source: new ScriptedSource("Hello 😀 there"), contextTokens: 4096 });
});

afterAll(() => served.server.close());

const body = JSON.stringify({ messages: [{ role: "user", content: "Hi 歪" }] });
const head = (path: string, more: readonly string[] = [], method = "POST") =>
  [`${method} ${path} HTTP/1.1`, "host: localhost", "content-type: application/json", ...more]
    .map((line) => `${line}\r\n`)
    .join("") + "\r\n";
const length = `content-length: ${Buffer.byteLength(body)}`;

/** What comes back until there are so many answers, or the server closes. */
async function exchange(write: (socket: Socket) => Promise<void> | void, answers = 1) {
  const socket = connect(Number(new URL(served.url).port), "127.0.0.1");
  let text = "";
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  socket.setEncoding("utf8");
  socket.on("data", (data: string) => {
    text += data;
    const whole = text.match(/HTTP\/1\.1 [2-5]\d\d [^]*?\r\n\r\n[^]*?\}\s*(?=HTTP|$)/g) ?? [];
    if (whole.length >= answers) resolve(text);
  });
  socket.on("close", () => resolve(text));
  socket.on("error", reject);
  socket.on("connect", () => void write(socket));
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}

const chat = "/v1/chat/completions";

describe("a request", () => {
  test("that comes byte by byte is one request", async () => {
    const text = await exchange(async (socket) => {
      for (const byte of Buffer.from(head(chat, [length]) + body)) {
        socket.write(Uint8Array.of(byte));
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    expect(text).toStartWith("HTTP/1.1 200");
    expect(text).toContain("Hello 😀 there");
  });

  test("may have a body in chunks, which part a character", async () => {
    const bytes = Buffer.from(body);
    const middle = bytes.indexOf(Buffer.from("歪")) + 1;
    const text = await exchange(async (socket) => {
      socket.write(head(chat, ["transfer-encoding: chunked"]));
      for (const part of [bytes.subarray(0, middle), bytes.subarray(middle)]) {
        socket.write(`${part.length.toString(16)}\r\n`);
        socket.write(part);
        socket.write("\r\n");
        await Bun.sleep(5);
      }
      socket.write("0\r\n\r\n");
    });
    expect(text).toStartWith("HTTP/1.1 200");
  });

  test("may come right behind another", async () => {
    const models = head("/v1/models", [], "GET");
    const text = await exchange((socket) => void socket.write(models + models), 2);
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
  });

  test("may expect to be told to go on", async () => {
    const text = await exchange(async (socket) => {
      socket.write(head(chat, [length, "expect: 100-continue"]));
      await Bun.sleep(30);
      socket.write(body);
    });
    expect(text).toContain("HTTP/1.1 200");
    expect(text).toContain("Hello 😀 there");
  });

  test("that is no HTTP closes its connection and nobody else's", async () => {
    const text = await exchange((socket) => void socket.write("\u0016\u0003\u0001 hello\r\n\r\n"));
    expect(text).not.toContain("200");
    expect((await served.get("/health")).status).toBe(200);
  });
});

describe("tools", () => {
  const odd = { type: "object", properties: { code: { type: "string", pattern: "(?=a)\\d" } } };
  const tools = Array.from({ length: 30 }, (_unused, i) => ({
    type: "function",
    function: { name: `tool_${i}`, parameters: i === 17 ? odd : { type: "object" } },
  }));
  const request = { messages: [{ role: "user", content: "Hi" }], tools };

  test("one of which has an odd schema are offered all the same", async () => {
    expect((await served.post(chat, request)).status).toBe(200);
  });

  test("are refused by the name of the odd one where a call must keep to it", async () => {
    const response = await served.post(chat, { ...request, tool_choice: "required" });
    expect(response.status).toBe(400);
    const { error } = (await response.json()) as { error: { message: string; param: string } };
    expect(error.param).toBe("tools");
    expect(error.message).toStartWith("tool tool_17: schema.properties.code: pattern");
  });
});
