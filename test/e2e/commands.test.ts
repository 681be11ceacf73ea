/** What each command prints for scripts: the shapes that design and README promise. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { answer, cleanUp, json, noDriver, testTimeoutMs, write, zinc } from "../helpers/binary.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const isNumber: unknown = expect.any(Number);
const isText: unknown = expect.any(String);

describe("tokenize", () => {
  test("prints the ids of all that stands on stdin, and adds none", async () => {
    const ids = await json<number[]>(["tokenize"], { stdin: "Hello there\n" });
    expect(ids.length).toBeGreaterThan(2);
    expect(ids.every((id) => Number.isInteger(id) && id >= 0 && id < 4087)).toBe(true);
    expect(await answer(["tokenize"])).toBe("[]\n");
  });

  test("takes special tokens for text unless --special", async () => {
    const stdin = "<|im_start|>";
    expect(await json<number[]>(["tokenize", "--special"], { stdin })).toEqual([4088]);
    expect(await json<number[]>(["tokenize"], { stdin })).not.toContain(4088);
  });

  test("--jsonl answers line by line", async () => {
    const lines = ["Hello", "", "two\nlines", "<|im_end|>", "\ud83d\ude00"];
    const stdin = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    const out = await answer(["tokenize", "--jsonl", "--special"], { stdin });
    const lists = out
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    const alone = await json<number[]>(["tokenize"], { stdin: "two\nlines" });
    expect(lists).toHaveLength(5);
    expect(lists.slice(1, 4)).toEqual([[], alone, [4089]]);
    expect(await answer(["tokenize", "--jsonl"], { stdin: '"a"' })).toMatch(/^\[\d+\]\n$/);
    expect(await answer(["tokenize", "--jsonl"])).toBe("");
  });
});

describe("template", () => {
  const messages = [{ role: "user", content: "Hi" }];

  test("prints the rendered text as a JSON string", async () => {
    const stdin = JSON.stringify({ messages, add_generation_prompt: true });
    expect(await json<string>(["template"], { stdin })).toBe(
      "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    );
    expect(await json<string>(["template"], { stdin: JSON.stringify({ messages }) })).toBe(
      "<|im_start|>user\nHi<|im_end|>\n",
    );
  });

  test("renders another one with any variable", async () => {
    const path = write("own.jinja", "{{ messages[0].content }} {{ color }} {{ eos_token }}");
    const stdin = JSON.stringify({ messages, color: "blue" });
    expect(await json<string>(["template", "--template", path], { stdin })).toBe(
      "Hi blue <|im_end|>",
    );
  });

  test("is told the time of ZINC_NOW", async () => {
    const path = write("date.jinja", "{{ strftime_now('%d %b %Y') }}");
    const env = { ZINC_NOW: "2026-11-30T10:15:00Z" };
    const args = ["template", "--template", path];
    expect(await json<string>(args, { stdin: "{}", env })).toBe("30 Nov 2026");
    const { code, err } = await zinc(args, { stdin: "{}", env: { ZINC_NOW: "soon" } });
    expect({ code, err }).toEqual({
      code: 2,
      err: "zinc: ZINC_NOW soon is no time; write it as 2026-11-30T10:15:00Z\n",
    });
  });
});

describe.skipIf(noDriver !== undefined)("logits", () => {
  test("are those of the last position, and with --all of every one", async () => {
    const tokens = ["--tokens", "4088,286,198"];
    const last = await json<number[]>(["logits", ...tokens]);
    const all = await json<number[][]>(["logits", ...tokens, "--all"]);
    expect(last).toHaveLength(4096);
    expect(all.map((list) => list.length)).toEqual([4096, 4096, 4096]);
    const spread = Math.max(...last) - Math.min(...last);
    for (const [id, logit] of last.entries()) {
      expect(Math.abs(logit - (all[2]?.[id] ?? Number.NaN))).toBeLessThan(spread * 1e-3);
    }
  });
});

describe.skipIf(noDriver !== undefined)("perplexity", () => {
  /** -log softmax(logits)[token] */
  function surprise(logits: readonly number[], token: number): number {
    const best = Math.max(...logits);
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit - best), 0);
    return Math.log(total) + best - (logits[token] ?? Number.NaN);
  }

  test("is what the logits of the second half of each window give", async () => {
    const content = "A fox met a bear near the river. They shared some bread. It was a warm day.";
    const path = write("text.txt", content);
    const ids = await json<number[]>(["tokenize"], { stdin: content });
    expect(ids.length).toBeGreaterThan(16);
    const losses: number[] = [];
    for (const start of [0, 8]) {
      const window = ids.slice(start, start + 8);
      const all = await json<number[][]>(["logits", "--tokens", window.join(), "--all"]);
      for (const position of [4, 5, 6]) {
        losses.push(surprise(all[position] ?? [], window[position + 1] ?? -1));
      }
    }
    const mean = losses.reduce((sum, loss) => sum + loss, 0) / losses.length;
    const args = ["perplexity", "-f", path, "--ctx", "8", "--chunks", "2", "--json"];
    const result = await json<{ ppl: number }>(args);
    expect(result).toMatchObject({ tokens: 6, ctx: 8 });
    expect(result.ppl / Math.exp(mean)).toBeCloseTo(1, 3);
    expect(await answer(args.slice(0, -1))).toMatch(
      /^perplexity [\d.]+ over 6 tokens, windows of 8, cache f16 with 4.10 kB a token\n$/,
    );
  });
});

describe.skipIf(noDriver !== undefined)("bench", () => {
  test("measures prefill and decode, in the order that was asked for", async () => {
    const args = ["bench", "-p", "4,2", "-n", "3", "-r", "1", "--depth", "0,5", "--json"];
    const report = await json<{ decode: Record<string, number>[] }>(args);
    expect(report).toMatchObject({
      device: { name: isText, driver: isText, readGBs: isNumber },
      model: { name: "Spark Llama", weightBytes: isNumber },
      prefill: [
        { tokens: 4, tokS: isNumber },
        { tokens: 2, tokS: isNumber },
      ],
      decode: [
        { depth: 0, streams: 1, tokS: isNumber, submitsPerStep: 1 },
        { depth: 5, streams: 1, tokS: isNumber, submitsPerStep: 1 },
      ],
    });
    const names = ["dispatchesPerStep", "barriersPerStep", "hostMsPerStep", "gpuMsPerStep"];
    for (const row of report.decode) {
      for (const name of [...names, "bytesPerStep", "roofline"]) {
        expect(row[name]).toBeGreaterThan(0);
      }
    }
    expect(report.decode[1]?.["bytesPerStep"]).toBeGreaterThan(
      report.decode[0]?.["bytesPerStep"] ?? 0,
    );
    expect(report.decode[0]?.["roofline"]).toBeLessThanOrEqual(1);
  });

  test("measures texts side by side, and the second turn of a chat", async () => {
    const args = ["bench", "-p", "40", "-n", "3", "-r", "1", "--streams", "2,3", "--depth", "33"];
    expect(await json<object>([...args, "--prefix-reuse", "--json"])).toMatchObject({
      decode: [
        { depth: 33, streams: 2, tokS: isNumber },
        { depth: 33, streams: 3, tokS: isNumber },
      ],
      // The last token of an answer is not fed before there is a second turn.
      prefixReuse: [
        { tokens: 40, answerTokens: 3, cachedTokens: 42, newTokens: 65, firstMs: isNumber },
      ],
    });
  });

  test("measures guesses that are right and wrong, which change no text", async () => {
    const args = ["bench", "-p", "2", "-n", "12", "-r", "1", "--spec", "--deterministic", "--json"];
    const kinds = [
      ...["off", "ngram"].map((guesses) => ({ text: "own", guesses })),
      ...["off", "right", "half right", "wrong"].map((guesses) => ({ text: "given", guesses })),
    ];
    expect(await json<object>(args)).toMatchObject({
      speculation: kinds.map((kind) => ({
        ...{ ...kind, isSame: true, tokS: isNumber, speedup: isNumber },
        ...{ drafted: isNumber, accepted: isNumber },
      })),
    });
  });

  test("prints a line for each measurement without --json", async () => {
    const out = await answer(["bench", "-p", "4", "-n", "2", "-r", "1"]);
    const [device, model, prefill, decode] = out.split("\n");
    expect(device).toMatch(/ reads [\d.]+ GB\/s$/);
    expect(model).toMatch(/^Spark Llama, [\d.]+ MB of weights, cache f16 with 4.10 kB a token$/);
    expect(prefill).toMatch(/^prefill 4 tokens: [\d.]+ tok\/s$/);
    expect(decode).toMatch(/^decode at depth 0, 1 text: [\d.]+ tok\/s \(.+\), [\d.]+ ms GPU and /);
  });
});

describe.skipIf(noDriver !== undefined)("check and verify", () => {
  interface Report {
    readonly ok: boolean;
    readonly checks: readonly { name: string; status: string; detail: string }[];
  }

  test("--check --json tells each result, the device and the model", async () => {
    const report = await json<Report>(["--check", "--json"]);
    expect(report).toMatchObject({
      ok: true,
      device: { name: isText, kind: "cpu", driver: isText, readGBs: isNumber },
      model: { name: "Spark Llama", architecture: "llama", contextTokens: 2048 },
    });
    const statusOf = new Map(report.checks.map(({ name, status }) => [name, status]));
    const fine = ["host", "drivers", "vulkan", "bandwidth", "kernels", "self-test", "model", "fit"];
    for (const name of fine) expect([name, statusOf.get(name)]).toEqual([name, "ok"]);
    expect(statusOf.get("device")).toBe("warn");
    for (const { status } of report.checks) expect(["ok", "warn", "skip"]).toContain(status);
  });

  test("--check is fine with a warning, and --strict is not", async () => {
    const { code, out, err } = await zinc(["check", "--strict"]);
    expect({ code, err }).toEqual({ code: 1, err: "" });
    expect(out).toMatch(/^OK {4}self-test {8}\d+ logits of the built-in model, off by /m);
    expect(out).toEndWith("ready, but for --strict 1 warning too many\n");
  });

  // All of them are what test/kernels/conformance.test.ts goes through.
  test("verify tells the error of every case of the kernels that are asked for", async () => {
    const report = await json<{ kernels: { kernel: string }[] }>([
      "verify",
      "rms_norm",
      "soft_cap",
      "--json",
    ]);
    expect(report).toMatchObject({ ok: true });
    expect(new Set(report.kernels.map(({ kernel }) => kernel))).toEqual(
      new Set(["rms_norm", "soft_cap"]),
    );
    for (const row of report.kernels) {
      expect(row).toMatchObject({ kernel: isText, variant: isText, case: isText, status: isText });
      expect(row).toHaveProperty("maxRelativeError");
    }
  });
});
