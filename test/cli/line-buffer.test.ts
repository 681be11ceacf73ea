/** Editing: a bar stands for the cursor. */
import { describe, expect, test } from "bun:test";
import { layOut } from "../../src/cli/terminal/layout.ts";
import { LineBuffer } from "../../src/cli/terminal/line-buffer.ts";

function buffer(shown: string): LineBuffer {
  const made = new LineBuffer();
  made.set(shown.replace("|", ""));
  made.moveTo(shown.indexOf("|"));
  return made;
}

function show({ text, cursor }: LineBuffer): string {
  return `${text.slice(0, cursor)}|${text.slice(cursor)}`;
}

describe("a key", () => {
  test.each([
    ["left", "añ|b", "a|ñb"],
    ["left", "a👩‍👩‍👧|b", "a|👩‍👩‍👧b"],
    ["right", "a|é", "aé|"],
    ["backspace", "a👩‍👩‍👧|b", "a|b"],
    ["delete", "a|😀b", "a|b"],
    ["home", "one\ntwo|", "one\n|two"],
    ["end", "o|ne\ntwo", "one|\ntwo"],
    ["word-left", "say  hello, |you", "say  |hello, you"],
    ["word-right", "say| hello", "say hello|"],
    ["ctrl-w", "say hello |you", "say |you"],
    ["ctrl-k", "a|b\nc", "a|\nc"],
    ["ctrl-u", "a\nbc|d", "a\n|d"],
    ["up", "one\ntwo|", "one|\ntwo"],
    ["up", "o\ntwo|", "o|\ntwo"],
    ["down", "on|e\nt\nx", "one\nt|\nx"],
    ["newline", "a|b", "a\n|b"],
  ])("%s: %j", (name, before, after) => {
    const edited = buffer(before);
    expect(edited.press(name)).toBe(true);
    expect(show(edited)).toBe(after);
  });

  test("that cuts can be undone by the one that puts back", () => {
    const edited = buffer("one two|");
    edited.press("ctrl-w");
    edited.press("home");
    edited.press("ctrl-y");
    expect(show(edited)).toBe("two|one ");
  });

  test("up on the first line and down on the last mean nothing here", () => {
    expect(buffer("a|").press("up")).toBe(false);
    expect(buffer("a|").press("down")).toBe(false);
    expect(buffer("a|").press("f12")).toBe(false);
  });
});

describe("on the screen", () => {
  test("lines stand behind the prompt and below it", () => {
    expect(layOut("ab\ncd", 5, "> ", 80)).toEqual({
      rows: ["> ab", "  cd"],
      cursor: { row: 1, column: 4 },
    });
  });

  test("long lines are broken, wide characters count twice, and one column stays free", () => {
    expect(layOut("abcdef", 6, "> ", 6)).toEqual({
      rows: ["> abc", "def"],
      cursor: { row: 1, column: 3 },
    });
    expect(layOut("日本語", 1, "> ", 7)).toEqual({
      rows: ["> 日本", "語"],
      cursor: { row: 0, column: 4 },
    });
  });

  test("a text that is too high is shown around the cursor", () => {
    const { rows, cursor } = layOut("a\nb\nc\nd\ne", 4, "> ", 80, 3);
    expect({ rows, cursor }).toEqual({
      rows: ["  b", "  c", "  d"],
      cursor: { row: 1, column: 2 },
    });
  });
});
