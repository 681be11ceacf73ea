/** The executable alone: it answers with the model inside it, and does what the flags say. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { tinyLlama } from "../helpers/tiny-llama.ts";
import { numbers, scalar, text, texts } from "../helpers/gguf-forge.ts";
import {
  answer,
  binary,
  cleanUp,
  ensureBuilt,
  files,
  home,
  json,
  noDriver,
  refusal,
  testTimeoutMs,
  write,
  zinc,
} from "../helpers/binary.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

interface Run {
  readonly text: string;
  readonly tokens: readonly number[];
  readonly promptTokens: number;
  readonly finishReason: string;
  readonly timings: Readonly<Record<string, number | null>>;
  readonly drafts: { readonly drafted: number; readonly accepted: number };
}

const run = (...args: string[]) => json<Run>(["--json", ...args]);
const noTokenizer = tinyLlama({ pairs: { "tokenizer.ggml.model": text("none") } }).bytes;

describe.skipIf(noDriver !== undefined)("the built-in model", () => {
  test("answers from a copy in an empty folder, with HOME as the whole environment", async () => {
    ensureBuilt();
    const place = join(files, "alone");
    mkdirSync(place, { recursive: true });
    copyFileSync(binary, join(place, "zinc"));
    const child = Bun.spawn([join(place, "zinc"), "--prompt", "What is 7 + 5?", "--temp", "0"], {
      cwd: place,
      env: { HOME: home },
      stdin: "ignore",
      stderr: "pipe",
    });
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect(await child.exited).toBe(0);
    expect(out).toContain("12");
    expect(err).toMatch(/^Spark Llama on .+: .+ MB on the device, context 2048, cache f16 /m);
    expect(err).toMatch(/, cache f16 with 4\.10 kB a token, loaded in .+ s$/m);
    expect(readdirSync(place)).toEqual(["zinc"]);
  });

  test("says on stderr that the processor computes, in one plain line", async () => {
    const { out, err } = await zinc(["--prompt", "What is 7 + 5?", "--temp", "0"]);
    expect(out).toMatch(/^[^\n]*12[^\n]*\n$/);
    const [first, second, third] = err.split("\n");
    expect(first).toMatch(/^zinc: warning: running on the processor \(.+\): no GPU driver/);
    expect(second).toMatch(/^Spark Llama on /);
    expect(third).toMatch(/^\d+ prompt tokens at [\d.]+ tok\/s, \d+ tokens at [\d.]+ tok\/s$/);
  });

  test("prints nothing but the answer with --quiet", async () => {
    const { out, err } = await zinc(["--prompt", "Hi", "--quiet", "-n", "2"]);
    expect({ lines: out.split("\n").length, err }).toEqual({ lines: 2, err: "" });
  });

  test("is used by run, too, and through variables", async () => {
    const env = { ZINC_PROMPT: "What is 7 + 5?", ZINC_TEMP: "0", ZINC_QUIET: "1" };
    expect(await answer(["run"], { env })).toContain("12");
    const { tokens } = await json<Run>(["run", "--json", "-n", "1"], {
      env: { ...env, ZINC_MAX_TOKENS: "5" },
    });
    expect(tokens).toHaveLength(1);
  });
});

describe.skipIf(noDriver !== undefined)("run --json", () => {
  test("tells text, ids, reason and timings", async () => {
    const result = await run("--prompt", "Hello", "-n", "4", "--temp", "0");
    expect(result).toMatchObject({ promptTokens: 9, finishReason: "length" });
    expect(result.tokens).toHaveLength(4);
    expect(result.text.length).toBeGreaterThan(4);
    const names = ["loadMs", "prefillMs", "decodeMs", "prefillTokS", "decodeTokS"];
    expect(Object.keys(result.timings)).toEqual(expect.arrayContaining(names));
    for (const name of names) expect(result.timings[name]).toBeGreaterThan(0);
  });

  test("counts guesses, and makes the same text with them and without", async () => {
    const story = ["--prompt", "Repeat: one two three one two three", "--ignore-eos"];
    const args = [...story, "-n", "100", "--temp", "0", "--deterministic"];
    const plain = await run(...args, "--draft", "off");
    const guessed = await run(...args, "--draft", "ngram");
    expect(plain.drafts).toEqual({ drafted: 0, accepted: 0 });
    expect(guessed.drafts.drafted).toBeGreaterThanOrEqual(guessed.drafts.accepted);
    expect(guessed.tokens).toEqual(plain.tokens);
  });

  test("ends with reason stop at the end token, which is not part of the answer", async () => {
    const result = await run("--prompt", "What is 7 + 5?", "--temp", "0");
    expect(result).toMatchObject({ finishReason: "stop" });
    expect(result.text).not.toContain("<|im_end|>");
    expect(result.tokens).not.toContain(4089);
  });

  test("makes no token with -n 0 and one with -n 1", async () => {
    const none = await run("--prompt", "Hello", "-n", "0");
    expect(none).toMatchObject({ text: "", tokens: [], finishReason: "length" });
    const one = await run("--prompt", "Hello", "-n", "1", "--temp", "0");
    const more = await run("--prompt", "Hello", "-n", "3", "--temp", "0");
    expect(one.tokens).toEqual(more.tokens.slice(0, 1));
    expect(one.finishReason).toBe("length");
  });

  test("goes to the edge of the context if the end token is ignored, and no farther", async () => {
    const args = ["--prompt", "Hello", "--ignore-eos", "-c", "40"];
    const result = await run(...args);
    expect(result.finishReason).toBe("length");
    // The last token needs no place of its own.
    expect(result.promptTokens + result.tokens.length).toBe(41);
    expect((await run(...args, "-n", "1000")).tokens).toHaveLength(result.tokens.length);
  });

  test("fills the context with a prompt that is exactly as long", async () => {
    const ids = (count: number) => Array.from({ length: count }, () => 300).join();
    const result = await run("--tokens", ids(12), "-c", "12");
    expect(result).toMatchObject({ promptTokens: 12, finishReason: "length" });
    expect(result.tokens).toHaveLength(1);
    expect(await refusal(2, ["--tokens", ids(13), "-c", "12"])).toBe(
      "the prompt has 13 tokens and the context 12; " +
        "shorten the prompt or choose a longer context with -c",
    );
  });

  test("stops in front of a stop string, the first one of several", async () => {
    const args = ["--prompt", "Hello", "--temp", "0"];
    const whole = await run(...args);
    expect(whole.text).toContain("help you");
    const cut = await run(...args, "--stop", "nowhere", "--stop", "lp yo");
    expect(cut).toMatchObject({ finishReason: "stop" });
    expect(cut.text).toBe(whole.text.slice(0, whole.text.indexOf("lp yo")));
  });

  test("the same seed gives the same text, another one another", async () => {
    const args = ["--prompt", "Tell me a story about a fox", "-n", "24", "--seed"];
    const [first, again, other] = [
      await run(...args, "7"),
      await run(...args, "7"),
      await run(...args, "8"),
    ];
    expect(first?.tokens).toEqual(again?.tokens ?? []);
    expect(first?.tokens).not.toEqual(other?.tokens ?? []);
  });

  test("temperature 0 takes the largest logit, whatever the seed", async () => {
    const ids = "4088,286,198,382,304,266";
    const logits = await json<number[]>(["logits", "--tokens", ids]);
    const best = logits.indexOf(Math.max(...logits));
    const args = ["--tokens", ids, "--temp", "0", "-n", "1", "--ignore-eos", "--seed", "1"];
    expect((await run(...args)).tokens).toEqual([best]);
    const banned = await run(
      "--tokens",
      ids,
      "--temp",
      "0",
      "-n",
      "1",
      "--logit-bias",
      `${best}=-inf`,
    );
    expect(banned.tokens[0]).not.toBe(best);
    const forced = await run("--tokens", ids, "-n", "1", "--logit-bias", "7=inf", "--seed", "1");
    expect(forced.tokens).toEqual([7]);
  });
});

describe.skipIf(noDriver !== undefined)("prompts", () => {
  test("--raw feeds the text as it is, and special tokens in it count", async () => {
    const ids = await json<number[]>(["tokenize", "--special"], { stdin: "<|im_start|>Hi" });
    expect(await run("--raw", "--prompt", "<|im_start|>Hi", "-n", "0")).toMatchObject({
      promptTokens: ids.length,
    });
    const asText = await run("--prompt", "<|im_start|>Hi", "-n", "0");
    expect(asText.promptTokens).toBeGreaterThan(ids.length + 8);
  });

  test("stdin comes before --prompt, on lines of its own", async () => {
    const count = async (stdin: string, ...args: string[]) =>
      (await json<Run>(["--json", "--raw", "-n", "0", ...args], { stdin })).promptTokens;
    const expected = await count("", "--prompt", "one two\nthree");
    expect(await count("one two", "--prompt", "three")).toBe(expected);
    expect(await count("one two\n", "--prompt", "three")).toBe(expected);
    expect(await count("one two\nthree")).toBe(expected);
  });

  test("the line feed of echo is not part of a chat prompt", async () => {
    const count = async (stdin: string) =>
      (await json<Run>(["--json", "-n", "0"], { stdin })).promptTokens;
    const expected = await count("Hello");
    expect([await count("Hello\n"), await count("Hello\r\n")]).toEqual([expected, expected]);
    expect(await count("Hello\n\n")).toBeGreaterThan(expected);
  });

  test("--template replaces the model's own", async () => {
    const path = write("plain.jinja", "{{ messages[0].content }}");
    const ids = await json<number[]>(["tokenize"], { stdin: "Hello there" });
    expect(await run("--template", path, "--prompt", "Hello there", "-n", "0")).toMatchObject({
      promptTokens: ids.length,
    });
  });

  test("characters of several bytes come out whole", async () => {
    const { out } = await zinc(["--prompt", "Say 'thank you' in Japanese.", "--temp", "0"]);
    expect(out).not.toContain("\ufffd");
    expect(out).toContain("ありがとう");
  });
});

describe.skipIf(noDriver !== undefined)("a file without tokenizer", () => {
  test("takes --tokens, and ids come out", async () => {
    const path = write("none.gguf", noTokenizer);
    const result = await run("-m", path, "--tokens", "1,2,3", "-n", "4", "--temp", "0");
    expect(result).toMatchObject({ text: "", promptTokens: 3, finishReason: "length" });
    const out = await answer(["-m", path, "--tokens", "1,2,3", "-n", "4", "--temp", "0"]);
    expect(out).toBe(`${result.tokens.join(",")}\n`);
    const logits = await json<number[]>(["logits", "-m", path, "--tokens", "1,2,3"]);
    expect(logits.indexOf(Math.max(...logits))).toBe(result.tokens[0] ?? -1);
  });

  test("takes no text", async () => {
    const path = write("none.gguf", noTokenizer);
    expect(await refusal(3, ["-m", path, "--prompt", "Hi"])).toBe(
      "tiny has no tokenizer; feed ids with --tokens 1,2,3",
    );
  });

  test("can be measured", async () => {
    const path = write("none.gguf", noTokenizer);
    const args = ["bench", "-m", path, "-p", "4", "-n", "2", "-r", "1", "--json"];
    expect(await json<object>(args)).toMatchObject({ model: { name: "tiny" } });
  });
});

describe.skipIf(noDriver !== undefined)("a file whose text needs care", () => {
  const pairs = {
    "general.name": text("odd\u001b[31m\nname"),
    "tokenizer.ggml.model": text("gpt2"),
    "tokenizer.ggml.pre": text("unheard-of"),
    "tokenizer.ggml.tokens": texts([..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"]),
    "tokenizer.ggml.token_type": numbers(
      "i32",
      Array.from({ length: 40 }, () => 1),
    ),
    "tokenizer.ggml.merges": texts(["a b"]),
    "tokenizer.ggml.eos_token_id": scalar("u32", 0),
    "tokenizer.chat_template": text("{% frobnicate %}"),
  };

  test("gets a warning for each fault, also with --json, each on one line", async () => {
    const path = write("odd.gguf", tinyLlama({ pairs }).bytes);
    const { code, err } = await zinc(["-m", path, "--prompt", "ab", "-n", "1", "--json"]);
    expect(code).toBe(0);
    const lines = err.trimEnd().split("\n");
    for (const line of lines) expect(line).toStartWith("zinc: warning: ");
    expect(err).toContain("tokenizer.ggml.pre unheard-of is unknown");
    expect(err).toContain("chat template cannot be used");
  });

  test("cannot send control characters to the terminal", async () => {
    const path = write("odd.gguf", tinyLlama({ pairs }).bytes);
    const { out, err } = await zinc(["-m", path, "--prompt", "ab", "-n", "1"]);
    expect(out + err).not.toContain("\u001b");
    expect(err).toContain("odd\\x1b[31m\\nname on ");
    expect(await answer(["model", "info", path])).toContain("odd\\x1b[31m\\nname");
  });
});
