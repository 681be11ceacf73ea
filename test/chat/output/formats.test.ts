/** Every format, however it is cut: the same parts, and arguments that are JSON. */
import { describe, expect, test } from "bun:test";
import cases from "./answers.json";
import type { Part } from "../../../src/chat/answer.ts";
import { answerStart } from "../../../src/chat/output/answer-start.ts";
import { OutputSplitter } from "../../../src/chat/output/splitter.ts";
import { collect, formatFor, splitAllWays, type Model } from "./feeding.ts";

/** Parts in short: text as it is, (thoughts), name{arguments}; and broken calls with a "!". */
function brief(parts: readonly Part[]): string {
  return parts
    .map((part) => {
      if (part.type === "reasoning") return `(${part.text})`;
      if (part.type === "call") return part.name;
      if (part.type === "call_end") return "; ";
      return part.type === "call_broken" ? "! " : part.text;
    })
    .join("");
}

const { tools } = cases;
const models: Readonly<Record<string, Model>> = cases.models;
const { hermes, coder, mistral, gptOss, lfm, minimax } = cases.models;

const call = (body: string) => `<tool_call>\n${body}\n</tool_call>`;
const paris = '{"name": "get_weather", "arguments": {"city": "Paris"}}';

function modelOf(name: string): Model {
  const model = models[name];
  if (model === undefined) throw new Error(`no model ${name}`);
  return model;
}

describe.each(cases.answers)("$name", ({ model, answer, parts: expected }) => {
  const ways = splitAllWays(modelOf(model), answer, { tools });

  test("gives its parts", () => {
    expect(brief(ways[0] ?? [])).toBe(expected);
  });

  test("gives the same by the character and in random pieces", () => {
    for (const parts of ways) expect(parts).toEqual(ways[0] ?? []);
  });

  test("gives arguments that are JSON, under ids of their own", () => {
    const { toolCalls } = collect(ways[0] ?? []);
    for (const { arguments: json } of toolCalls) expect(JSON.parse(json)).toBeObject();
    expect(new Set(toolCalls.map(({ id }) => id)).size).toBe(toolCalls.length);
  });
});

describe.each(cases.malformed)("$name", ({ model, answer }) => {
  test("stays text, and nothing of it is lost", () => {
    for (const parts of splitAllWays(modelOf(model), answer, { tools })) {
      expect(collect(parts)).toEqual({ text: answer, reasoning: "", toolCalls: [] });
    }
  });
});

describe("a call that breaks", () => {
  test("behind a good one leaves that one", () => {
    const bad = call('{"name": "g", "arguments": {"a" 1}}');
    for (const parts of splitAllWays(hermes, `${call(paris)}\n${bad}`)) {
      const { text, toolCalls } = collect(parts);
      expect(toolCalls.map(({ name }) => name)).toEqual(["get_weather"]);
      expect(text).toBe(bad);
    }
  });

  test("in a list comes as text from the end of the last good one", () => {
    for (const parts of splitAllWays(mistral, `[TOOL_CALLS][${paris}, {"name": "f", "arg`)) {
      expect(brief(parts)).toBe('get_weather{"city": "Paris"}; , {"name": "f", "arg');
    }
  });

  test("is taken back if its arguments have been told already", () => {
    const [parts = []] = splitAllWays(hermes, '<tool_call>{"name": "f", "arguments": {"a": 1');
    expect(parts).toEqual([
      { type: "call", index: 0, id: "call_0", name: "f" },
      { type: "arguments", index: 0, text: '{"a": 1' },
      { type: "call_broken", index: 0 },
      { type: "text", text: '<tool_call>{"name": "f", "arguments": {"a": 1' },
    ]);
  });

  test.each([
    ["JSON", hermes, `Hi.\n${call(paris)}`],
    ["a coder's", coder, call("<function=f>\n<parameter=a>\n1\n</parameter>\n</function>")],
    ["Mistral's", mistral, `[TOOL_CALLS][${paris}]`],
    ["LFM2's", lfm, '<|tool_call_start|>[f(a="b")]<|tool_call_end|>'],
    ["MiniMax's", minimax, '<minimax:tool_call><invoke name="f"></invoke></minimax:tool_call>'],
  ])("because the answer ends in %s, at any place, loses nothing", (_name, model, answer) => {
    for (let end = 1; end < answer.length; end++) {
      const cut = answer.slice(0, end);
      for (const parts of splitAllWays(model, cut)) {
        const { text, toolCalls } = collect(parts);
        if (toolCalls.length === 0) expect(text.trim()).toBe(cut.trim());
        else expect(toolCalls).toHaveLength(1);
      }
    }
  });
});

describe("marks", () => {
  test("that the vocabulary has as tokens are text where they are spelled", () => {
    const text = "The tag is `<think>`, and <tool_call>{} is no call.";
    const splitter = new OutputSplitter(formatFor(hermes));
    expect(brief([...splitter.push(text), ...splitter.end()])).toBe(text);
  });

  test("close a thought by their token, so that it may quote them", () => {
    const splitter = new OutputSplitter(formatFor(hermes));
    const parts: Part[] = [
      ...splitter.push("<think>", 0),
      ...splitter.push("I write `</think>` here."),
      ...splitter.push("</think>", 1),
      ...splitter.push("Yes."),
      ...splitter.end(),
    ];
    expect(brief(parts)).toBe("(I write `</think>` here.)Yes.");
  });

  test("in the middle of a text open no thought unless they are structure", () => {
    for (const parts of splitAllWays(hermes, "Write <think> like this.")) {
      expect(brief(parts)).toBe("Write <think> like this.");
    }
  });

  test("of another family are text", () => {
    for (const parts of splitAllWays(hermes, "[TOOL_CALLS] [THINK]x")) {
      expect(brief(parts)).toBe("[TOOL_CALLS] [THINK]x");
    }
  });

  test("of calls are text where calls are not wanted", () => {
    for (const parts of splitAllWays(hermes, call(paris), { calls: false })) {
      expect(collect(parts)).toEqual({ text: call(paris), reasoning: "", toolCalls: [] });
    }
  });
});

describe("a prompt", () => {
  const template = (text: string) => ({ text, special: true });
  const user = (text: string) => ({ text, special: false });
  const start = (...prompt: { text: string; special: boolean }[]) =>
    answerStart(formatFor(hermes), prompt);

  test("that opens a thought makes the answer begin with it", () => {
    const opened = start(user("Hi"), template("<|im_end|>\n<|im_start|>assistant\n<think>\n"));
    for (const parts of splitAllWays(hermes, "Hm.\n</think>\n\nYes.", { start: opened })) {
      expect(brief(parts)).toBe("(Hm.)Yes.");
    }
    // Some models write the mark once more.
    for (const parts of splitAllWays(hermes, "<think>\nHm.</think>Yes.", { start: opened })) {
      expect(brief(parts)).toBe("(Hm.)Yes.");
    }
  });

  test("that closes it leaves the text alone, also one that begins with the mark", () => {
    const closed = start(user("Hi"), template("<|im_end|>assistant\n<think>\n\n</think>\n\n"));
    expect(closed).toMatchObject({ isThoughtClosed: true });
    for (const parts of splitAllWays(hermes, "<think> is a tag.", { start: closed })) {
      expect(brief(parts)).toBe("<think> is a tag.");
    }
  });

  test("that ends with the words of a user opens nothing", () => {
    expect(start(template("<|im_start|>"), user("<think>\n"))).toEqual({
      isThoughtClosed: false,
      header: "",
    });
  });

  test("of gpt-oss may have begun the header", () => {
    const begun = answerStart(formatFor(gptOss), [
      user("Hi"),
      template("<|end|><|start|>assistant<|channel|>analysis<|message|>"),
    ]);
    for (const parts of splitAllWays(gptOss, "Hm.<|end|>", { start: begun })) {
      expect(brief(parts)).toBe("(Hm.)");
    }
  });
});
