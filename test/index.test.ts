/** The library on the test device: texts side by side, refusals, cancelling and closing. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { UserError, type ErrorKind } from "../src/errors.ts";
import { load, type LanguageModel } from "../src/index.ts";
import { noGpu } from "./helpers/gpu.ts";

setDefaultTimeout(300_000);

const options = {
  device: process.env["ZINC_TEST_DEVICE"] ?? "llvmpipe",
  cacheFolder: null,
  contextTokens: 96,
};
const greedy = { temperature: 0, maxTokens: 8 };

let model: LanguageModel;

/** What a refusal says, if it is one of this kind. */
async function refusalOf(kind: ErrorKind, use: () => unknown): Promise<string> {
  try {
    await use();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    expect(error.kind).toBe(kind);
    return error.text;
  }
  throw new Error("it was accepted");
}

async function textOf(generation: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const piece of generation) text += piece;
  return text;
}

describe.skipIf(noGpu !== undefined)("a loaded model", () => {
  beforeAll(async () => {
    model = await load(undefined, options);
  });

  afterAll(() => model.close());

  test("tells what it is", () => {
    expect(model.config.name).toBe("Spark Llama");
    expect(model.contextTokens).toBe(96);
    expect(model.hasTokenizer).toBe(true);
  });

  test("gives the pieces of a text, and the whole of it as the result", async () => {
    const generation = model.generate("Hello", greedy);
    expect(generation.promptTokens).toBe(9);
    const text = await textOf(generation);
    const result = await generation.result();
    expect(result).toMatchObject({ text, promptTokens: 9, finishReason: "length" });
    expect(result.tokens).toHaveLength(8);
    expect((await model.generate("Hello", greedy).result()).text).toBe(text);
  });

  test("makes texts side by side, and logits meanwhile", async () => {
    const first = model.generate("Hello", greedy);
    const second = model.generate("Why?", greedy);
    const alone = await model.generate("Why?", greedy).result();
    const logits = model.logits([1, 2, 3]);
    const pieces = first[Symbol.asyncIterator]();
    await pieces.next();
    expect(model.logits([1, 2, 3])).toEqual(logits);
    expect((await second.result()).tokens).toEqual([...alone.tokens]);
    await pieces.return();
    expect(await refusalOf("failed", () => first.result())).toBe("the text was not completed");
  });

  test("remembers the head of a prompt", async () => {
    const tokens = Array.from({ length: 80 }, (_unused, i) => 300 + i);
    const { cachedTokens, text } = await model.generate({ tokens }, greedy).result();
    const again = await model.generate({ tokens }, greedy).result();
    expect([cachedTokens, again.cachedTokens, again.text]).toEqual([0, 79, text]);
  });

  test("is free again after a text that was left halfway, however often", async () => {
    // Each fills most of the context: a cache that is not given back would be full soon.
    for (let i = 0; i < 5; i++) {
      for await (const _piece of model.generate("Hello", { ...greedy, maxTokens: 80 })) break;
    }
    const long = Array.from({ length: 90 }, () => 300);
    expect((await model.generate({ tokens: long }, greedy).result()).promptTokens).toBe(90);
  });

  test("ends early on a signal and keeps what there is", async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const generation = model.generate("Hello", {
      ...greedy,
      ignoreEos: true,
      maxTokens: 60,
      signal,
    });
    let text = "";
    for await (const piece of generation) {
      text += piece;
      controller.abort();
    }
    expect(await generation.result()).toMatchObject({ text, finishReason: "cancelled" });
    const late = model.generate("Hello", { signal });
    expect(await late.result()).toMatchObject({ text: "", tokens: [], finishReason: "cancelled" });
  });

  test("can be iterated over once", async () => {
    const generation = model.generate("Hello", greedy);
    await textOf(generation);
    expect(await refusalOf("failed", () => textOf(generation))).toBe(
      "a text can be iterated over only once",
    );
  });

  test("refuses prompts that cannot be fed", async () => {
    expect(await refusalOf("usage", () => model.generate(""))).toStartWith("the prompt is empty");
    expect(await refusalOf("usage", () => model.generate({ tokens: [] }))).toStartWith(
      "the prompt is empty",
    );
    for (const id of [-1, 4096, 1.5, Number.NaN]) {
      const line = `token ${id} is not in the vocabulary; ids go from 0 to 4095`;
      expect(await refusalOf("usage", () => model.generate({ tokens: [1, id] }))).toBe(line);
      expect(await refusalOf("usage", () => model.logits([1, id]))).toBe(line);
    }
    const long = Array.from({ length: 97 }, () => 300);
    expect(await refusalOf("usage", () => model.generate({ tokens: long }))).toBe(
      "the prompt has 97 tokens and the context 96; " +
        "shorten the prompt or choose a longer context with -c",
    );
    expect(await refusalOf("usage", () => model.logits(long))).toStartWith("the prompt has 97");
  });

  test.each([
    [{ temperature: -1 }, "temperature is -1; it must be a number from 0 to 100"],
    [{ topP: 0 }, "topP is 0; it must be a number above 0 to 1"],
    [{ maxTokens: -1 }, "maxTokens is -1; it must be a whole number from 0"],
    [{ maxTokens: Number.NaN }, "maxTokens is NaN; it must be a whole number from 0"],
    [
      { logitBias: new Map([[4096, 1]]) },
      "token 4096 is not in the vocabulary; ids go from 0 to 4095",
    ],
  ])("refuses the option %p", async (bad, line) => {
    expect(await refusalOf("usage", () => model.generate("Hello", bad))).toBe(line);
  });

  test("holds an answer to its format, thoughts and calls aside", async () => {
    const grammar = 'root ::= ("yes" | "no") "!"';
    const format = { type: "grammar", grammar } as const;
    const { text } = await model.generate("Is water wet?", { ...greedy, format }).result();
    expect(["yes!", "no!"]).toContain(text);
    const raw = await model.generate("Well?", { ...greedy, raw: true, format }).result();
    expect(["yes!", "no!"]).toContain(raw.text);
    const schema = { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] };
    const shaped = { ...greedy, maxTokens: 16, format: { type: "schema", schema } } as const;
    const messages = [{ role: "user", content: "Hello" }];
    const tools = [{ type: "function", function: { name: "get_time" } }];
    const answer = await model.chat({ messages, tools, thinking: "off" }, shaped).result();
    expect([true, false]).toContain((JSON.parse(answer.text) as { a: boolean }).a);
    const wrong = { ...greedy, format: { type: "grammar", grammar: "root ::= a" } } as const;
    expect(await refusalOf("usage", () => model.generate("Hello", wrong).result())).toBe(
      "grammar, line 1: there is no rule a",
    );
  });

  test("embeds texts, side by side, each as it does alone", async () => {
    const texts = ["Hello", "Tell me a story about a fox", "Hello"];
    const [hello, story, again] = await Promise.all(texts.map((text) => model.embed(text)));
    expect(hello).toHaveLength(256);
    const dot = (a?: Float32Array, b?: Float32Array) =>
      a?.reduce((sum, x, i) => sum + x * (b?.[i] ?? Number.NaN), 0);
    expect(dot(hello, hello)).toBeCloseTo(1, 5);
    expect(dot(hello, again)).toBeCloseTo(1, 3);
    expect(dot(hello, story)).toBeLessThan(0.99);
    const cut = await model.embed("Hello", { dimensions: 8 });
    expect(dot(cut, cut)).toBeCloseTo(1, 5);
    expect(await refusalOf("usage", () => model.embed(""))).toStartWith("the prompt is empty");
    expect(await refusalOf("usage", () => model.embed("Hello", { dimensions: 257 }))).toBe(
      "Spark Llama has embeddings of 256 dimensions, not 257; ask for up to 256",
    );
    const signal = AbortSignal.abort(new Error("no time"));
    expect(model.embed("Hello", { signal })).rejects.toThrow("no time");
  });

  test("works after a refusal as before", async () => {
    const before = model.logits([1, 2, 3]);
    await refusalOf("usage", () => model.logits([9999]));
    expect(model.logits([1, 2, 3])).toEqual(before);
  });

  test("gives its own copy of the logits", () => {
    const one = model.logits([1, 2, 3]);
    const kept = one.slice();
    model.logits([4, 5]);
    expect(one).toEqual(kept);
  });
});

describe.skipIf(noGpu !== undefined)("a closed model", () => {
  test("ends the text in the making as cancelled", async () => {
    const closing = await load(undefined, options);
    const generation = closing.generate("Hello", { ignoreEos: true });
    let count = 0;
    for await (const _piece of generation) if (++count === 3) closing.close();
    const { finishReason, tokens } = await generation.result();
    expect({ finishReason, few: tokens.length < 20 }).toEqual({
      finishReason: "cancelled",
      few: true,
    });
  });

  test("is of no more use, and may be closed again", async () => {
    const closed = await load(undefined, options);
    closed.close();
    closed.close();
    const line = "the model is closed; load it again";
    expect(await refusalOf("failed", () => closed.logits([1]))).toBe(line);
    expect(await refusalOf("failed", () => closed.generate("Hello").result())).toBe(line);
  });

  test("two may be open at once, and one survives the other", async () => {
    const one = await load(undefined, options);
    const other = await load(undefined, options);
    const expected = one.logits([1, 2, 3]);
    one.close();
    expect(other.logits([1, 2, 3])).toEqual(expected);
    other.close();
  });
});

describe("loading", () => {
  test("refuses a context that is no count", async () => {
    for (const contextTokens of [0, -1, 1.5, Number.NaN]) {
      expect(await refusalOf("usage", () => load(undefined, { contextTokens }))).toBe(
        `contextTokens is ${contextTokens}; it must be a whole number from 1`,
      );
    }
  });

  test("refuses a file that is none, and a template that is none", async () => {
    expect(await refusalOf("model", () => load(""))).toStartWith("cannot open : no such file");
    const template = "{% frobnicate %}";
    expect(await refusalOf("usage", () => load(undefined, { template }))).toStartWith(
      "the chat template refused this: ",
    );
  });

  test.skipIf(noGpu !== undefined)("tells what will be taken before it is", async () => {
    const events: string[] = [];
    const warnings: string[] = [];
    const loaded = await load(undefined, {
      ...options,
      onPlan: ({ contextTokens }) => events.push(`plan for ${contextTokens}`),
      onProgress: ({ doneBytes, totalBytes }) => {
        if (doneBytes === totalBytes) events.push("loaded");
      },
      onWarning: (message) => warnings.push(message),
    });
    expect(events.slice(0, 2)).toEqual(["plan for 96", "loaded"]);
    expect(warnings.join()).toContain("running on the processor");
    loaded.close();
  });
});

describe.skipIf(noGpu !== undefined)("several devices", () => {
  const { device, ...others } = options;
  const spread = { ...others, devices: [device, device] };

  test("hold a model together, and give its texts and logits", async () => {
    const tokens = [300, 301, 302];
    using one = await load(undefined, options);
    using two = await load(undefined, spread);
    expect(two.engine.plan.stages).toHaveLength(2);
    expect(two.logits(tokens)).toEqual(one.logits(tokens));
    const ask = (from: LanguageModel) => from.generate("Hello", greedy).result();
    expect((await ask(two)).tokens).toEqual((await ask(one)).tokens);
  });

  test.each([
    [{ ...spread, device }, "--device and --devices exclude each other; give one of them"],
    [{ ...spread, devices: [] }, "--devices names no device"],
    [{ ...spread, deviceMemory: [0] }, "deviceMemory is 0; it must be a whole number from 1"],
  ])("are refused as %o", async (wrong, message) => {
    expect(await refusalOf("usage", () => load(undefined, wrong))).toStartWith(message);
  });
});
