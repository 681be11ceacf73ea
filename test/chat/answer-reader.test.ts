/** Tokens of the model inside the executable, to text, thoughts and calls. */
import { describe, expect, test } from "bun:test";
import { openBuiltin } from "../../src/builtin/builtin.ts";
import { AnswerReader } from "../../src/chat/answer-reader.ts";
import { formatOf } from "../../src/chat/output/format.ts";
import type { SplitOptions } from "../../src/chat/output/splitter.ts";
import { createTokenizer } from "../../src/tokenizer/tokenizer.ts";

using file = await openBuiltin();
const tokenizer = createTokenizer(file.metadata, () => {})!;
const format = formatOf(file.metadata.string("tokenizer.chat_template")!, tokenizer);

/** What an answer becomes; `tokens` may hold marks, as ids. */
function read(tokens: readonly number[], stop: readonly string[] = [], options: SplitOptions = {}) {
  const reader = new AnswerReader(tokenizer, format, options, stop);
  let used = 0;
  for (const token of tokens) {
    reader.push(token);
    used++;
    if (reader.isStopped) break;
  }
  reader.end();
  return { ...reader.answer, used };
}

const text = (typed: string) => tokenizer.encode(typed);
const mark = (name: string) => tokenizer.idOf(name)!;
const bytes = (typed: string) =>
  [...typed].flatMap((letter) => text(letter)).filter((id) => !format.tokens.has(id));

describe("an answer in tokens", () => {
  const thought = [
    mark("<think>"),
    ...text("\nHm, 😀.\n"),
    mark("</think>"),
    ...text("\n\nYes 歪."),
  ];

  test("is split where its marks are", () => {
    expect(read(thought)).toMatchObject({ reasoning: "Hm, 😀.", text: "Yes 歪.", toolCalls: [] });
  });

  test("may spell a mark in letters, which is text", () => {
    expect(read([...bytes("</think>"), ...text(" closes it.")])).toMatchObject({
      reasoning: "",
      text: "</think> closes it.",
    });
  });

  test("does not lose half a character in front of a mark", () => {
    const [first = 0] = text("😀");
    const half = tokenizer.tokenBytes(first).length < 4 ? [first] : [];
    expect(read([mark("<think>"), ...half, mark("</think>"), ...text("Yes.")])).toMatchObject({
      reasoning: half.length > 0 ? "\ufffd" : "",
      text: "Yes.",
    });
  });

  test("holds a call", () => {
    const json = '\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n';
    const call = [mark("<tool_call>"), ...text(json), mark("</tool_call>")];
    expect(read([...text("So:\n"), ...call]).toolCalls).toMatchObject([
      { name: "get_weather", arguments: '{"city": "Paris"}' },
    ]);
  });
});

describe("a stop string", () => {
  test("ends the answer before itself, over the borders of tokens", () => {
    const tokens = text("One two three four");
    const { text: shown, used } = read(tokens, ["o th"]);
    expect(shown).toBe("One tw");
    expect(used).toBeLessThan(tokens.length);
  });

  test("that only began is text", () => {
    expect(read(text("One two"), ["two three"]).text).toBe("One two");
  });

  test("does not reach over a mark, and may be within one", () => {
    const tokens = [...text("a"), mark("<tool_call>"), ...text("b")];
    expect(read(tokens, ["ab"]).text).toBe("a<tool_call>b");
    expect(read(tokens, ["<tool_call>"])).toMatchObject({ text: "a", used: 2 });
    expect(read(tokens, ["tool"])).toMatchObject({ text: "a<", used: 2 });
  });
});
