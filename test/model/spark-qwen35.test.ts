/**
 * The trained spark-qwen35 and spark-qwen35moe models of ../shared, where that folder is: their
 * tokens against the float32 goldens, their perplexity against llama.cpp's, and their logits
 * against the forward pass in plain loops. Skipped without the folder; `qwen35.test.ts` needs none.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { argmax } from "../../src/engine/sampler.ts";
import { Engine } from "../../src/engine/engine.ts";
import { openGguf } from "../../src/gguf/file.ts";
import { describeModel } from "../../src/model/architectures.ts";
import { createTokenizer } from "../../src/tokenizer/tokenizer.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { deviation, feed } from "../helpers/loaded.ts";
import { Qwen35Reference } from "../helpers/qwen35-reference.ts";

interface Golden {
  readonly name: string;
  readonly tokens: readonly number[];
  readonly greedy: readonly number[];
  readonly margins: readonly number[];
  readonly top5: readonly (readonly [token: number, logit: number])[];
}

const models = join(import.meta.dir, "../../../shared/models");
const goldens: Readonly<Record<string, readonly Golden[]>> = existsSync(join(models, "golden.json"))
  ? JSON.parse(readFileSync(join(models, "golden.json"), "utf8")).models
  : {};

/** `<|endoftext|>` and `<|im_end|>`. */
const endTokens = [4087, 4089];

/**
 * Files, the step at which quantization alone makes a text part from its golden where the margin
 * would not allow it (llama.cpp parts there too, also on the F32 twin of the file), and llama.cpp's
 * perplexity on that twin over the first window of 512 tokens of heldout.txt.
 */
const files: Readonly<Record<string, { perplexity: number; parts?: Record<string, number> }>> = {
  "spark-qwen35-F16": { perplexity: 1.5137 },
  "spark-qwen35-Q8_0": { perplexity: 1.5139 },
  "spark-qwen35-Q4_K_M": { perplexity: 1.51182 },
  "spark-qwen35moe-Q8_0": { perplexity: 1.55073 },
  "spark-qwen35moe-Q4_K_M": { perplexity: 1.55155, parts: { fox: 4 } },
};

function familyOf(name: string): string {
  return name.startsWith("spark-qwen35moe") ? "spark-qwen35moe" : "spark-qwen35";
}

/** What the model would choose behind the prompt and behind each token of a text that it is fed. */
function chooseAlong(engine: Engine, prompt: readonly number[], text: readonly number[]) {
  const all = feed(engine, [...prompt, ...text.slice(0, -1)]);
  const logits = all.slice(prompt.length - 1);
  return { first: logits[0] ?? new Float32Array(), tokens: logits.map((row) => argmax(row)) };
}

/** The same, token by token as in use. */
function continueText(engine: Engine, prompt: readonly number[], count: number): number[] {
  const sequence = engine.createSequence();
  const tokens = [argmax(engine.append(sequence, prompt))];
  while (tokens.length < count) tokens.push(argmax(engine.append(sequence, tokens.slice(-1))));
  engine.release(sequence);
  return tokens;
}

/** The text up to its first end token. */
function answerOf(greedy: readonly number[]): readonly number[] {
  const end = greedy.findIndex((token) => endTokens.includes(token));
  return end < 0 ? greedy : greedy.slice(0, end + 1);
}

function perplexityOf(engine: Engine, text: readonly number[]): number {
  const logits = feed(engine, text);
  const scored = text.slice(text.length / 2, -1).map((_, i) => i + text.length / 2);
  const surprises = scored.map((position) => {
    const row = logits[position] ?? new Float32Array();
    const best = Math.max(...row);
    const total = row.reduce((sum, logit) => sum + Math.exp(logit - best), 0);
    return Math.log(total) + best - (row[text[position + 1] ?? -1] ?? Number.NaN);
  });
  return Math.exp(surprises.reduce((sum, surprise) => sum + surprise, 0) / surprises.length);
}

describe.each(Object.entries(files))("%s", (name, facts) => {
  const path = join(models, `${name}.gguf`);
  const isSkipped = noGpu !== undefined || !existsSync(path);
  const isExact = name.endsWith("F16");
  // A long prompt takes a second or two on a processor; one file gets them all.
  const prompts = (goldens[familyOf(name)] ?? [])
    .filter(({ tokens }) => isExact || tokens.length < 100)
    .map((golden) => [golden.name, golden] as const);
  let engine: Engine;
  beforeAll(async () => {
    if (isSkipped) return;
    using file = openGguf(path);
    engine = await Engine.load(testGpu(), describeModel(file), { contextTokens: 1024 });
  });
  afterAll(() => {
    if (!isSkipped) engine.close();
  });

  test.skipIf(isSkipped).each(prompts)("answers %s as the golden", (prompt, golden) => {
    const expected = isExact ? golden.greedy : answerOf(golden.greedy);
    const { first, tokens } = chooseAlong(engine, golden.tokens, expected);
    if (isExact) {
      expect(tokens).toEqual([...expected]);
      for (const [token, logit] of golden.top5) expect(first[token]).toBeCloseTo(logit, 1);
      return;
    }
    const parting = tokens.findIndex((token, i) => token !== expected[i]);
    if (parting < 0 || parting === facts.parts?.[prompt]) return;
    expect(golden.margins[parting]).toBeLessThan(0.1);
  });

  test.skipIf(isSkipped)("does so token by token, too", () => {
    const some = prompts.filter(([prompt]) => ["identity", "capital", "emoji"].includes(prompt));
    for (const [, { tokens, greedy }] of some) {
      const expected = answerOf(greedy);
      expect(continueText(engine, tokens, expected.length)).toEqual([...expected]);
    }
  });

  test.skipIf(isSkipped)("predicts a text as llama.cpp does", () => {
    using file = openGguf(path);
    const text = readFileSync(join(models, "heldout.txt"), "utf8").slice(0, 4000);
    const tokens =
      createTokenizer(file.metadata, () => {})
        ?.encode(text)
        .slice(0, 512) ?? [];
    expect(tokens).toHaveLength(512);
    expect(Math.abs(perplexityOf(engine, tokens) / facts.perplexity - 1)).toBeLessThan(1e-3);
  });

  test.skipIf(isSkipped)("gives the logits of plain loops, however the text is cut", () => {
    using file = openGguf(path);
    const text = prompts.flatMap(([, { tokens }]) => tokens).slice(0, 80);
    const { logits, margins } = new Qwen35Reference(file).run(text);
    const whole = feed(engine, text);
    const isSure = (_unused: unknown, position: number) => (margins[position] ?? 0) > 1e-2;
    // A key that lies between two halves may be rounded to either.
    expect(deviation(whole.filter(isSure), logits.filter(isSure))).toBeLessThan(5e-3);
    for (const length of [1, 7, 64]) {
      expect(deviation(feed(engine, text, length), whole)).toBeLessThan(1e-3);
    }
  });
});
