/** From events to an answer, and to the numbers beside it. */
import { describe, expect, test } from "bun:test";
import { Answer } from "../../src/web/answer.ts";
import { piecesOf } from "../../src/web/api.ts";
import { formatBytes, formatSeconds, formatSpeed, readMetrics } from "../../src/web/metrics.ts";
import { readHealth, readModels, readProperties } from "../../src/web/monitor.ts";

const chunk = (delta: unknown, finish: string | null = null, more: object = {}) =>
  JSON.stringify({ model: "m", choices: [{ index: 0, delta, finish_reason: finish }], ...more });

describe("an event", () => {
  test.each([
    [chunk({ content: "Hi" }), [{ kind: "text", text: "Hi" }]],
    [chunk({ role: "assistant", content: "" }), [{ kind: "model", id: "m" }]],
    [chunk({ reasoning_content: "Hm" }), [{ kind: "reasoning", text: "Hm" }]],
    [chunk({ content: null }, "stop"), [{ kind: "finish", reason: "stop" }]],
    [
      chunk({ tool_calls: [{ index: 1, id: "call_1", function: { name: "f", arguments: "{" } }] }),
      [{ kind: "tool", index: 1, id: "call_1", name: "f", arguments: "{" }],
    ],
    [
      chunk({}, "length", { timings: { predicted_per_second: 12.5 } }),
      [
        { kind: "finish", reason: "length" },
        { kind: "speed", tokensPerSecond: 12.5 },
      ],
    ],
    [
      '{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}',
      [{ kind: "usage", promptTokens: 3, tokens: 4 }],
    ],
    ["{broken", []],
    ['{"choices":"none"}', []],
  ])("%s says %j", (data, pieces) => {
    expect(piecesOf(data)).toEqual(pieces as never);
  });

  test("of an error is one, with the server's words", () => {
    expect(() => piecesOf('{"error":{"message":"the device was lost"}}')).toThrow(
      "the device was lost",
    );
  });
});

describe("an answer", () => {
  test("puts tool calls together that come side by side and in pieces", () => {
    const answer = new Answer(0);
    const tool = (index: number, id: string, name: string, text: string) =>
      answer.add({ kind: "tool", index, id, name, arguments: text }, 1);
    tool(0, "call_a", "f", "");
    tool(1, "call_b", "g", '{"y":');
    tool(0, "", "", '{"x":1}');
    tool(1, "", "", "2}");
    expect(answer.fields().toolCalls).toEqual([
      { id: "call_a", name: "f", arguments: '{"x":1}' },
      { id: "call_b", name: "g", arguments: '{"y":2}' },
    ]);
  });

  test("counts thinking until the first word, and speed from the first token", () => {
    const answer = new Answer(10);
    answer.add({ kind: "reasoning", text: "Hm" }, 11);
    answer.add({ kind: "reasoning", text: "." }, 12);
    answer.add({ kind: "text", text: "Yes" }, 13);
    answer.add({ kind: "text", text: "." }, 14);
    expect(answer.fields()).toEqual({ content: "Yes.", reasoning: "Hm.", reasoningSeconds: 2 });
    expect(answer.stats()).toEqual({
      tokens: 4,
      tokensPerSecond: 1,
      seconds: 4,
      firstTokenSeconds: 1,
    });
    expect(answer.liveSpeed).toBe(1);
  });

  test("believes the server's numbers more than its own", () => {
    const answer = new Answer(0);
    answer.add({ kind: "text", text: "Two tokens" }, 1);
    answer.add({ kind: "speed", tokensPerSecond: 50 }, 1);
    answer.add({ kind: "usage", promptTokens: 7, tokens: 2 }, 1);
    expect(answer.stats()).toEqual({
      tokens: 2,
      tokensPerSecond: 50,
      seconds: 1,
      firstTokenSeconds: 1,
      promptTokens: 7,
    });
  });

  test("of which nothing came has no numbers", () => {
    expect(new Answer(0).stats()).toBeUndefined();
  });
});

describe("the server", () => {
  test.each([
    [undefined, { state: "unreachable" }],
    [{ status: 200, json: {} }, { state: "ready" }],
    [
      { status: 503, json: { status: "loading", progress: 0.5 } },
      { state: "loading", progress: 0.5 },
    ],
    [{ status: 503, json: { status: "draining" } }, { state: "busy" }],
    [{ status: 401, json: undefined }, { state: "locked" }],
  ])("that answers %j is %j", (answer, server) => {
    expect(readHealth(answer)).toEqual(server as never);
  });

  test("lists models, and says what it does by itself", () => {
    const meta = { architecture: "llama", n_ctx: 2048 };
    expect(readModels({ data: [{ id: "a", meta }, { id: "b", loaded: false }, null] })).toEqual([
      { id: "a", architecture: "llama", contextTokens: 2048 },
      { id: "b", isLoaded: false },
    ]);
    expect(readModels({ data: [{ id: 7 }] })).toEqual([]);
    expect(readModels("nothing")).toEqual([]);
    const generation = { temperature: 0.8, other: 1 };
    expect(
      readProperties({ n_ctx: 9, device: { name: "d" }, default_generation_settings: generation }),
    ).toEqual({ sampling: { temperature: 0.8 }, contextTokens: 9, device: "d" });
  });

  test("tells numbers in Prometheus's format, which are summed by name", () => {
    const text = '# HELP a b\na{x="1"} 2\na{x="}"} 3.5\nb 1e9\nc NaN\n\n';
    expect([...readMetrics(text)]).toEqual([
      ["a", 5.5],
      ["b", 1e9],
    ]);
  });

  test.each([
    [formatBytes(999), "999 B"],
    [formatBytes(8_400_000), "8.4 MB"],
    [formatBytes(34_200_000_000), "34 GB"],
    [formatSeconds(0.04), "40 ms"],
    [formatSeconds(3.21), "3.2 s"],
    [formatSeconds(600), "10 min"],
    [formatSpeed(41.66), "41.7 tok/s"],
    [formatSpeed(217.2), "217 tok/s"],
  ])("numbers are read as %s", (text, expected) => {
    expect(text).toBe(expected);
  });
});
