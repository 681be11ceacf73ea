/** Messages of one line and of several. */
import { describe, expect, test } from "bun:test";
import { LineInput } from "../../src/cli/chat/line-input.ts";
import { MessageLines } from "../../src/cli/chat/message-lines.ts";

function messagesOf(lines: readonly string[]): (string | undefined)[] {
  const message = new MessageLines();
  const complete = lines.map((line) => message.push(line)).filter((text) => text !== undefined);
  const rest = message.end();
  return rest === undefined ? complete : [...complete, rest];
}

describe("messages", () => {
  test.each([
    ["single lines", ["a", "", "b"], ["a", "", "b"]],
    ["a line that goes on", ["a\\", "b\\", "c", "d"], ["a\nb\nc", "d"]],
    ["a block", ['"""', "a", "", "b", '"""', "c"], ["a\n\nb", "c"]],
    ["a block that begins and ends beside its text", ['"""a', 'b"""'], ["a\nb"]],
    ["a block on one line", ['"""a"""', "b"], ["a", "b"]],
    ["quotes within a line", ['say """a"""'], ['say """a"""']],
    ["a block that does not end", ['"""a', "b"], ["a\nb"]],
    ["a last line that wants to go on", ["a\\"], ["a"]],
  ])("are %s", (_name, lines, expected) => {
    expect(messagesOf(lines)).toEqual(expected);
  });
});

describe("a pipe", () => {
  async function* stream(...pieces: (string | Uint8Array)[]) {
    for (const piece of pieces) yield typeof piece === "string" ? Buffer.from(piece) : piece;
  }

  test("gives its lines wherever it is cut, the last one without an end, too", async () => {
    const bytes = Buffer.from("é\r\nb\nc");
    const input = new LineInput(stream(bytes.subarray(0, 1), bytes.subarray(1)), false);
    const read = async () => await input.read("> ");
    expect(await read()).toEqual({ type: "message", text: "é" });
    expect(await read()).toEqual({ type: "message", text: "b" });
    expect(await read()).toEqual({ type: "message", text: "c" });
    expect(await read()).toEqual({ type: "end" });
  });

  test("that is no UTF-8 is refused", async () => {
    const input = new LineInput(stream(Uint8Array.of(0xff, 0x0a)), false);
    expect(input.read("> ")).rejects.toThrow("stdin is no valid UTF-8");
  });
});
