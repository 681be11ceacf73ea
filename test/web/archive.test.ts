/** Files of conversations, and settings: what comes from outside is checked. */
import { describe, expect, test } from "bun:test";
import { readArchive, readMessage, writeArchive } from "../../src/web/archive.ts";
import { splitBlocks } from "../../src/web/markdown.ts";
import { readSettings } from "../../src/web/settings.ts";
import { markdownText } from "./fixture.ts";

const conversation = { id: "c", title: "T", system: "", head: "m", created: 1, updated: 2 };
const message = {
  id: "m",
  conversation: "c",
  parent: null,
  role: "assistant",
  content: "Yes",
  reasoning: "Hm",
  reasoningSeconds: 1.5,
  toolCalls: [{ id: "call_1", name: "f", arguments: "{}" }],
  state: "stopped",
  model: "spark",
  stats: { tokens: 1, tokensPerSecond: 2, seconds: 3, firstTokenSeconds: 4, promptTokens: 5 },
  created: 3,
} as const;

describe("a file of conversations", () => {
  test("holds all that it was made from", () => {
    const archive = readArchive(writeArchive([conversation], [message]));
    expect(archive.conversations).toEqual([conversation]);
    expect(archive.messages).toEqual([message]);
  });

  test("gives what is sound in it, and no message without its conversation", () => {
    const text = JSON.stringify({
      format: "zinc-conversations",
      version: 1,
      conversations: [conversation, { id: 5 }, null],
      messages: [message, { ...message, id: "n", conversation: "gone" }, { ...message, role: "x" }],
    });
    expect(readArchive(text).conversations).toEqual([conversation]);
    expect(readArchive(text).messages).toEqual([message]);
  });

  test.each([
    ["", "this file holds no zinc conversations"],
    ["[]", "this file holds no zinc conversations"],
    [
      '{"format":"zinc-conversations","version":2}',
      "version 2 of the file is newer than this page",
    ],
  ])("%j is none: %s", (text, problem) => {
    expect(() => readArchive(text)).toThrow(problem);
  });

  test("has messages with sensible values where something is missing", () => {
    const { id, conversation: of, role, content } = message;
    expect(readMessage({ id, conversation: of, role, content, created: "today" })).toEqual({
      id,
      conversation: of,
      role,
      content,
      parent: null,
      state: "done",
      created: 0,
    });
  });
});

describe("settings", () => {
  test.each([[null], ["{"], ["7"], ['{"theme":"pink","sampling":[1],"tools":3,"model":null}']])(
    "that are %j are as if there were none",
    (text) => {
      expect(readSettings(text)).toEqual(readSettings("{}"));
    },
  );

  test("keep only parameters that there are", () => {
    const text = '{"sampling":{"temperature":0,"top_k":"many","evil":1}}';
    expect(readSettings(text).sampling).toEqual({ temperature: 0 });
  });
});

describe("the blocks of a text", () => {
  test.each([
    [markdownText],
    ["one\n\ntwo"],
    ["- a\n- b\n\n\n# c\n```\nopen"],
    ["\n\nafter"],
    [""],
  ])("of %j make it up again", (text) => {
    expect(splitBlocks(text).join("")).toBe(text);
  });

  test("are paragraphs, lists, tables and code", () => {
    expect(splitBlocks(markdownText).map((block) => block.trim().slice(0, 9))).toEqual([
      "## A tabl",
      "Galvanise",
      "| coating",
      "1. It is ",
      "```python",
      "> It give",
      "See [the ",
    ]);
  });
});
