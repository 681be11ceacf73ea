/** What terminals send for the keys of a keyboard, in one piece or several. */
import { describe, expect, test } from "bun:test";
import { KeyReader, type Key } from "../../src/cli/terminal/keys.ts";

const key = (name: string): Key => ({ type: "key", name });
const text = (typed: string): Key => ({ type: "text", text: typed });

/** Keys of what is sent at once, and of the same in single characters. */
function both(sent: string): [Key[], Key[]] {
  const reader = new KeyReader();
  const single = [...sent].flatMap((unit) => reader.push(unit));
  const joined: Key[] = [];
  for (const next of single) {
    const last = joined.at(-1);
    if (last?.type === "text" && next.type === "text") {
      joined[joined.length - 1] = text(last.text + next.text);
    } else joined.push(next);
  }
  return [new KeyReader().push(sent), joined];
}

describe("keys", () => {
  test.each<[string, string, Key[]]>([
    ["letters", "hé😀", [text("hé😀")]],
    ["Enter behind a word", "hi\r", [text("hi"), key("enter")]],
    ["Ctrl+J", "\n", [key("newline")]],
    ["Alt+Enter", "\u001b\r", [key("newline")]],
    ["the backspace of either kind", "\u007f\b", [key("backspace"), key("backspace")]],
    ["control and a letter", "\u0001\u0003\u0017", [key("ctrl-a"), key("ctrl-c"), key("ctrl-w")]],
    ["arrows", "\u001b[A\u001b[D", [key("up"), key("left")]],
    ["arrows in the other mode", "\u001bOB", [key("down")]],
    [
      "Home, End and Delete",
      "\u001b[H\u001b[4~\u001b[3~",
      [key("home"), key("end"), key("delete")],
    ],
    ["Ctrl+Left, Alt+B", "\u001b[1;5D\u001bb", [key("word-left"), key("word-left")]],
    ["what means nothing", "\u001b[24~\u001b[Ix", [text("x")]],
    [
      "a paste",
      "\u001b[200~a\r\nb\rc\u001b[31m\t\u001b[201~",
      [{ type: "paste", text: "a\nb\nc[31m\t" }],
    ],
  ])("are read: %s", (_name, sent, expected) => {
    for (const keys of both(sent)) expect(keys).toEqual(expected);
  });

  test("are not read before they are whole", () => {
    const reader = new KeyReader();
    expect(reader.push("\u001b[200~Enter\r is text")).toEqual([]);
    expect(reader.push(" here\u001b[201~\r")).toEqual([
      { type: "paste", text: "Enter\n is text here" },
      key("enter"),
    ]);
  });
});
