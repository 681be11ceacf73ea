/**
 * The trained spark-llama models: their tokens and logits against llama.cpp's in single precision,
 * and against the float32 goldens in ../shared where that folder is. One of them is built in.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { openBuiltin } from "../../src/builtin/builtin.ts";
import { selfTest } from "../../src/builtin/self-test.ts";
import { argmax } from "../../src/engine/sampler.ts";
import { Engine } from "../../src/engine/engine.ts";
import { openGguf, type GgufFile } from "../../src/gguf/file.ts";
import { describeModel } from "../../src/model/architectures.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import twins from "./spark-twins.json";

// A software driver compiles kernels slowly the first time.
setDefaultTimeout(120_000);

interface Golden {
  readonly name: string;
  readonly tokens: readonly number[];
  readonly greedy: readonly number[];
  readonly margins: readonly number[];
  readonly top5: readonly (readonly [token: number, logit: number])[];
}
type Twin = Pick<Golden, "greedy" | "top5">;

const models = join(import.meta.dir, "../../../shared/models");
const goldens: readonly Golden[] = existsSync(join(models, "golden.json"))
  ? JSON.parse(readFileSync(join(models, "golden.json"), "utf8")).models["spark-llama"]
  : [];

/**
 * Of each quantization: how far its five best logits lie from those of the float model, and the
 * margin below which it may choose another token than that.
 */
const bounds = {
  F16: { top5: 0.02, margin: 0 },
  Q8_0: { top5: 0.3, margin: 0.1 },
  Q6_K: { top5: 1.25, margin: 0.1 },
  Q5_K_M: { top5: 1.25, margin: 0.2 },
  Q4_K_M: { top5: 1.25, margin: 0.2 },
} as const;
type Quantization = keyof typeof bounds;

function worstOf(top5: Golden["top5"], logits: Float32Array): number {
  return Math.max(...top5.map(([token, logit]) => Math.abs((logits[token] ?? Number.NaN) - logit)));
}

/** How much better the best logit is than the second. */
function marginOf(logits: Float32Array): number {
  const [first = 0, second = 0] = logits.toSorted().slice(-2).toReversed();
  return first - second;
}

/**
 * What the model would choose behind the prompt and behind each token of a text that it is fed: one
 * pass instead of one a token.
 */
function chooseAlong(engine: Engine, prompt: readonly number[], text: readonly number[]) {
  const sequence = engine.createSequence();
  const tokens: number[] = [];
  const margins: number[] = [];
  let first = new Float32Array();
  engine.appendAll(sequence, [...prompt, ...text.slice(0, -1)], (index, logits) => {
    if (index < prompt.length - 1) return;
    if (index === prompt.length - 1) first = Float32Array.from(logits);
    tokens.push(argmax(logits));
    margins.push(marginOf(logits));
  });
  engine.release(sequence);
  return { first, tokens, margins };
}

/** The same, token by token as in use. */
function continueText(engine: Engine, prompt: readonly number[], count: number): number[] {
  const sequence = engine.createSequence();
  const tokens = [argmax(engine.append(sequence, prompt))];
  while (tokens.length < count) tokens.push(argmax(engine.append(sequence, tokens.slice(-1))));
  engine.release(sequence);
  return tokens;
}

function pathOf(quantization: Quantization): string {
  return join(models, `spark-llama-${quantization}.gguf`);
}

function isThere(quantization: Quantization): boolean {
  return quantization === "Q4_K_M" || existsSync(pathOf(quantization));
}

async function open(quantization: Quantization): Promise<GgufFile> {
  return quantization === "Q4_K_M" ? openBuiltin() : openGguf(pathOf(quantization));
}

/** Opens the model before the tests of a group and closes it behind them. */
function loaded(quantization: Quantization, isSkipped: boolean): { readonly engine: Engine } {
  let engine: Engine | undefined;
  beforeAll(async () => {
    if (isSkipped) return;
    using file = await open(quantization);
    engine = await Engine.load(testGpu(), describeModel(file), { contextTokens: 256 });
  });
  afterAll(() => engine?.close());
  return {
    get engine() {
      if (engine === undefined) throw new Error(`${quantization} is not loaded`);
      return engine;
    },
  };
}

const quantized = Object.keys(twins.files) as (keyof typeof twins.files)[];
/** A long prompt takes a second or two on a processor; the built-in model alone gets them. */
function promptsFor(name: Quantization): [string, number[]][] {
  const prompts = Object.entries(twins.prompts);
  return name === "Q4_K_M" ? prompts : prompts.filter(([, tokens]) => tokens.length < 100);
}

const shortPrompts = ["hello", "identity", "emoji"] as const;

describe.each(quantized)("spark-llama %s", (name) => {
  const isSkipped = noGpu !== undefined || !isThere(name);
  const model = loaded(name, isSkipped);
  const twinOf = (prompt: string) => (twins.files[name] as unknown as Record<string, Twin>)[prompt];

  test.skipIf(isSkipped).each(promptsFor(name))("answers %s as its twin", (prompt, tokens) => {
    const { greedy, top5 } = twinOf(prompt) ?? { greedy: [], top5: [] };
    const own = chooseAlong(model.engine, tokens, greedy);
    expect(worstOf(top5, own.first)).toBeLessThan(0.02);
    // Only where two tokens are as good as equal may rounding decide.
    const sure = own.tokens.map((token, i) => ((own.margins[i] ?? 0) < 0.02 ? greedy[i] : token));
    expect(sure).toEqual([...greedy]);

    const golden = goldens.find((row) => row.name === prompt);
    if (golden === undefined) return;
    expect(worstOf(golden.top5, own.first)).toBeLessThan(bounds[name].top5);
    const parting = own.tokens.findIndex((token, i) => token !== golden.greedy[i]);
    if (parting >= 0) expect(golden.margins[parting]).toBeLessThan(bounds[name].margin);
  });

  test.skipIf(isSkipped)("does so token by token, too", () => {
    for (const prompt of shortPrompts) {
      const greedy = twinOf(prompt)?.greedy ?? [];
      const own = continueText(model.engine, twins.prompts[prompt], greedy.length);
      expect(own).toEqual([...greedy]);
    }
  });
});

describe("spark-llama F16", () => {
  const isSkipped = noGpu !== undefined || goldens.length === 0 || !isThere("F16");
  const model = loaded("F16", isSkipped);

  test.skipIf(isSkipped).each(goldens.map((golden) => [golden.name, golden] as const))(
    "continues %s with all 48 tokens of the golden",
    (_, { tokens, greedy, top5 }) => {
      const own = chooseAlong(model.engine, tokens, greedy);
      expect(worstOf(top5, own.first)).toBeLessThan(bounds.F16.top5);
      expect(own.tokens).toEqual([...greedy]);
    },
  );

  test.skipIf(isSkipped)("does so token by token, too", () => {
    for (const { tokens, greedy } of goldens.slice(0, 3)) {
      expect(continueText(model.engine, tokens, greedy.length)).toEqual([...greedy]);
    }
  });
});

describe("the built-in model", () => {
  const model = loaded("Q4_K_M", noGpu !== undefined);

  test.skipIf(noGpu !== undefined)("passes the self-test of zinc --check", () => {
    const logits = model.engine.append(model.engine.createSequence(), selfTest.tokens);
    expect(worstOf(selfTest.logits, logits)).toBeLessThan(0.02);
  });
});
