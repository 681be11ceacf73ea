/** Every format, however it is cut: the same parts, and arguments that are JSON. */
import { describe, expect, test } from "bun:test";
import type { Part } from "../../../src/chat/answer.ts";
import { answerStart } from "../../../src/chat/output/answer-start.ts";
import { OutputSplitter } from "../../../src/chat/output/splitter.ts";
import { collect, formatFor, splitAllWays, type Model } from "./feeding.ts";

/** The parts of an answer in short: text as it is, (thoughts), name{arguments} and !broken calls. */
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

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" }, exact: {} },
    },
  },
};
const time = { type: "function", function: { name: "get_time", parameters: {} } };

const hermes: Model = {
  template: "<think> </think> <tool_call> </tool_call>",
  shown: ["<think>", "</think>", "<tool_call>", "</tool_call>"],
};
const spelled: Model = { template: hermes.template };
const coder: Model = { template: "<tool_call> <function= <parameter= </tool_call>" };
const glm: Model = { template: "<tool_call> <arg_key> <arg_value>", control: ["<tool_call>"] };
const llama: Model = {
  template: '{"name": function name, "parameters": dictionary}',
  control: ["<|python_tag|>"],
};
const mistral: Model = {
  template: "[TOOL_CALLS] [THINK]",
  control: ["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[THINK]", "[/THINK]"],
};
const gptOss: Model = {
  template: "<|channel|> <|message|> <|start|>",
  control: ["<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>"],
};
const gemma: Model = {
  template: "<|channel> <|tool_call>",
  control: ["<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", '<|"|>'],
};
const deepseek: Model = {
  template: "<think> <｜tool▁calls▁begin｜>",
  control: [
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
  ],
};
const kimi: Model = { template: "<|tool_calls_section_begin|>" };
const cohere: Model = {
  template: "<|START_THINKING|> <|START_ACTION|> <|START_RESPONSE|>",
  control: [
    "<|START_THINKING|>",
    "<|END_THINKING|>",
    "<|START_ACTION|>",
    "<|END_ACTION|>",
    "<|START_RESPONSE|>",
    "<|END_RESPONSE|>",
  ],
};
const granite: Model = { template: "<think> <response>", control: ["<|tool_call|>"] };
const lfm: Model = {
  template: "<|tool_call_start|>",
  control: ["<|tool_call_start|>", "<|tool_call_end|>"],
};
const minimax: Model = { template: "<minimax:tool_call>" };
const apertus: Model = { template: "<|inner_prefix|> <|tools_prefix|>" };

const call = (body: string) => `<tool_call>\n${body}\n</tool_call>`;
const paris = '{"name": "get_weather", "arguments": {"city": "Paris"}}';
const sep = "<｜tool▁sep｜>";

describe.each<[string, Model, string, string]>([
  ["text", hermes, "Hello 😀, world", "Hello 😀, world"],
  ["text that compares", hermes, "1 < 2 and <b>bold</b> <th", "1 < 2 and <b>bold</b> <th"],
  ["a thought", hermes, "<think>\nHm.\n</think>\n\nYes.", "(Hm.)Yes."],
  ["a thought that is spelled", spelled, "<think>Hm.</think>Yes.", "(Hm.)Yes."],
  ["an unfinished thought", hermes, "<think>\nHm, wait", "(Hm, wait)"],
  ["a thought alone", hermes, "<think>Hm.</think>", "(Hm.)"],
  ["an empty thought", hermes, "<think>\n\n</think>\n\nYes.", "Yes."],
  ["a call", hermes, call(paris), 'get_weather{"city": "Paris"}; '],
  ["a call that is spelled", spelled, call(paris), 'get_weather{"city": "Paris"}; '],
  [
    "a thought, text and two calls",
    hermes,
    `<think>\nHm.\n</think>\n\nLet me see.\n${call(paris)}\n${call('{"name": "get_time", "arguments": {}}')}`,
    '(Hm.)Let me see.get_weather{"city": "Paris"}; get_time{}; ',
  ],
  [
    "arguments before the name",
    hermes,
    call('{"arguments": {"a": [1, {}]}, "name": "f"}'),
    'f{"a": [1, {}]}; ',
  ],
  [
    "arguments as a string",
    hermes,
    call('{"name": "f", "arguments": "{\\"a\\": 1}"}'),
    'f{"a": 1}; ',
  ],
  [
    "arguments with marks in them",
    hermes,
    call('{"name": "f", "arguments": {"a": "</tool_call>"}}'),
    'f{"a": "</tool_call>"}; ',
  ],
  [
    "bare line ends in strings",
    hermes,
    call('{"name": "f", "arguments": {"a": "x\ny"}}'),
    'f{"a": "x\\ny"}; ',
  ],
  [
    "a coder's call",
    coder,
    'Sure.\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis "F"\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>',
    'Sure.get_weather{"city": "Paris \\"F\\"", "days": 3}; ',
  ],
  ["a coder's call without tags", coder, "<function=get_time>\n</function>", "get_time{}; "],
  [
    "a coder's text of several lines",
    coder,
    call("<function=get_weather>\n<parameter=city>\na\n\nb</x>\n</parameter>\n</function>"),
    'get_weather{"city": "a\\n\\nb</x>"}; ',
  ],
  [
    "GLM's call",
    glm,
    "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
    'get_weather{"city": "Paris", "days": 2}; ',
  ],
  [
    "Llama's call",
    llama,
    '{"name": "get_weather", "parameters": {"city": "Paris"}}',
    'get_weather{"city": "Paris"}; ',
  ],
  [
    "Llama's calls behind its tag",
    llama,
    '<|python_tag|>{"name": "get_time", "parameters": {}}; {"name": "get_time", "parameters": {"a": null}}',
    'get_time{}; get_time{"a": null}; ',
  ],
  [
    "Llama's own tools",
    llama,
    "<|python_tag|>brave_search.call(query=\"a 'b'\")",
    'brave_search{"query": "a \'b\'"}; ',
  ],
  ["JSON that is no call", llama, '{"name": "Ann", "age": 3}', '{"name": "Ann", "age": 3}'],
  [
    "JSON that names no tool",
    llama,
    '{"name": "Ann", "parameters": {}} ok',
    '{"name": "Ann", "parameters": {}} ok',
  ],
  [
    "Mistral's list",
    mistral,
    `[TOOL_CALLS][${paris}, {"name": "get_time", "arguments": {}, "id": "x"}]`,
    'get_weather{"city": "Paris"}; get_time{}; ',
  ],
  [
    "Mistral's names",
    mistral,
    '[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]get_time[CALL_ID]abc123DEF[ARGS]{}',
    'get_weather{"city": "Paris"}; get_time{}; ',
  ],
  ["Mistral's thought", mistral, "[THINK]Hm.[/THINK]Yes.", "(Hm.)Yes."],
  [
    "Harmony",
    gptOss,
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
    "(Hm.)Yes.",
  ],
  [
    "a call in Harmony",
    gptOss,
    '<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Paris"}<|call|>',
    '(Hm.)get_weather{"city": "Paris"}; ',
  ],
  [
    "two thoughts in Harmony",
    gptOss,
    "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>analysis<|message|>B<|end|>",
    "(A\n\nB)",
  ],
  [
    "Gemma",
    gemma,
    '<|channel>thought\nHm.<channel|><|tool_call>call:get_weather{city:<|"|>Par"is<|"|>,days:3,exact:[true,None]}<tool_call|>',
    '(Hm.)get_weather{"city": "Par\\"is", "days": 3, "exact": [true, null]}; ',
  ],
  [
    "DeepSeek R1",
    deepseek,
    `<think>\nHm.</think>\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function${sep}get_weather\n\`\`\`json\n{"city": "Paris"}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
    '(Hm.)get_weather{"city": "Paris"}; ',
  ],
  [
    "DeepSeek V3.1",
    deepseek,
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_time${sep}{}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_time${sep}{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
    "get_time{}; get_time{}; ",
  ],
  [
    "Kimi",
    kimi,
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Paris"}<|tool_call_end|><|tool_calls_section_end|>',
    'get_weather{"city": "Paris"}; ',
  ],
  [
    "Cohere",
    cohere,
    "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Yes.<|END_RESPONSE|>",
    "(Hm.)Yes.",
  ],
  [
    "Cohere's calls",
    cohere,
    '<|START_ACTION|>[\n  {"tool_call_id": "0", "tool_name": "get_time", "parameters": {}}\n]<|END_ACTION|>',
    "get_time{}; ",
  ],
  ["Granite", granite, "<think>Hm.</think><response>Yes.</response>", "(Hm.)Yes."],
  ["Granite's calls", granite, `<|tool_call|>[${paris}]`, 'get_weather{"city": "Paris"}; '],
  [
    "LFM2",
    lfm,
    '<|tool_call_start|>[get_weather(city="Paris", days=3, exact=True)]<|tool_call_end|>Done.',
    'get_weather{"city": "Paris", "days": 3, "exact": true}; Done.',
  ],
  [
    "MiniMax",
    minimax,
    '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n<parameter name="days">3</parameter>\n</invoke>\n</minimax:tool_call>',
    'get_weather{"city": "Paris", "days": 3}; ',
  ],
  [
    "Apertus",
    apertus,
    '<|inner_prefix|>Hm.<|inner_suffix|><|tools_prefix|>[{"get_weather": {"city": "Paris"}}]<|tools_suffix|>',
    '(Hm.)get_weather{"city": "Paris"}; ',
  ],
])("%s", (_name, model, answer, expected) => {
  const ways = splitAllWays(model, answer, { tools: [weather, time] });

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

describe.each<[string, Model, string]>([
  ["no JSON", hermes, call("get the weather")],
  ["JSON without a name", hermes, call('{"arguments": {}}')],
  ["JSON that is cut off", hermes, '<tool_call>\n{"name": "f", "arguments": {"a": "b'],
  ["JSON that is cut off, spelled", spelled, 'Now:\n\n<tool_call>\n{"name": "f", "argu'],
  ["arguments that are a list", hermes, call('{"name": "f", "arguments": [1]}')],
  ["the mark alone", spelled, "see <tool_call>"],
  ["a mark in a sentence", spelled, "The tag <tool_call> opens a call and </tool_call> ends it."],
  [
    "a function that does not end",
    coder,
    "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n",
  ],
  ["a list that does not end", mistral, '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}'],
  ["Python that is none", lfm, "<|tool_call_start|>[f(1, 2)]<|tool_call_end|>"],
  ["code for an interpreter", llama, "<|python_tag|>import math\nprint(math.pi)"],
  ["a section without calls", deepseek, "<｜tool▁calls▁begin｜>nothing<｜tool▁calls▁end｜>"],
])("%s", (_name, model, answer) => {
  test("stays text, and nothing of it is lost", () => {
    for (const parts of splitAllWays(model, answer, { tools: [weather, time] })) {
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
