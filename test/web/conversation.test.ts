/** Trees of messages, and what of them is said to the server. */
import { describe, expect, test } from "bun:test";
import {
  childrenOf,
  groupsOf,
  newestLeaf,
  pathTo,
  titleOf,
  type Message,
} from "../../src/web/conversation.ts";
import { apiMessages, toolsProblem } from "../../src/web/prompt.ts";

let clock = 0;

function message(id: string, parent: string | null, some: Partial<Message> = {}): Message {
  const fields = { id, parent, conversation: "c", content: id, created: clock++ };
  return { ...fields, role: "user", state: "done", ...some };
}

const tree = new Map(
  [
    message("a", null),
    message("b", "a"),
    message("c", "b"),
    message("d", "a"),
    message("e", "d"),
    message("f", "d"),
  ].map((one) => [one.id, one]),
);

const ids = (messages: readonly Message[] = []) => messages.map(({ id }) => id);

describe("a conversation", () => {
  test("is the path to its head", () => {
    expect(ids(pathTo(tree, "c"))).toEqual(["a", "b", "c"]);
    expect(ids(pathTo(tree, "f"))).toEqual(["a", "d", "f"]);
    expect(pathTo(tree, null)).toEqual([]);
  });

  test("knows its branches in order of time", () => {
    expect(ids(childrenOf(tree).get("a"))).toEqual(["b", "d"]);
  });

  test("goes on where a branch is newest", () => {
    expect(newestLeaf(tree, "a")).toBe("f");
    expect(newestLeaf(tree, "b")).toBe("c");
  });

  test("of damaged records never runs in circles", () => {
    const circle = new Map([
      ["x", message("x", "y")],
      ["y", message("y", "x")],
    ]);
    expect(ids(pathTo(circle, "x"))).toEqual(["y", "x"]);
    expect(newestLeaf(circle, "x")).toBe("x");
    expect(ids(pathTo(new Map([["z", message("z", "gone")]]), "z"))).toEqual(["z"]);
  });

  test.each([
    ["Hello", "Hello"],
    ["  two\nlines", "two"],
    ["\n", "New conversation"],
    [
      "why does the galvanised roof of my neighbour's shed keep for decades",
      "why does the galvanised roof of my neighbour's shed keep…",
    ],
    ["x".repeat(80), `${"x".repeat(58)}…`],
  ])("of %j is called %j", (text, title) => {
    expect(titleOf(text)).toBe(title);
  });

  test("is listed by its age", () => {
    const now = new Date(2026, 7, 21, 9);
    const at = (id: string, day: number) => {
      const updated = new Date(2026, 7, day, 8).getTime();
      return { id, title: id, system: "", head: null, created: 0, updated };
    };
    const groups = groupsOf([at("a", 21), at("b", 20), at("c", 16), at("d", 1), at("e", -90)], now);
    expect(groups.map(([title, [first]]) => [title, first?.id])).toEqual([
      ["Today", "a"],
      ["Yesterday", "b"],
      ["The last week", "c"],
      ["The last month", "d"],
      ["Before", "e"],
    ]);
  });
});

describe("what is said to the server", () => {
  test("leaves out thoughts, numbers and the page's own words", () => {
    const path = [
      message("q", null),
      message("r", "q", { role: "assistant", reasoning: "hm", state: "stopped", model: "m" }),
    ];
    expect(apiMessages(path, "Be brief.")).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "q" },
      { role: "assistant", content: "r" },
    ]);
  });

  test("leaves out answers that never came, and joins what was said around them", () => {
    const path = [
      message("one", null),
      message("", "one", { role: "assistant", state: "failed" }),
      message("two", ""),
    ];
    expect(apiMessages(path, " ")).toEqual([{ role: "user", content: "one\n\ntwo" }]);
  });

  test.each([
    ["", undefined],
    ["[]", undefined],
    ["{}", "Tools are a JSON list."],
    ["[", "This is not JSON."],
  ])("tools of %j: %p", (text, problem) => {
    expect(toolsProblem(text)).toBe(problem);
  });
});
