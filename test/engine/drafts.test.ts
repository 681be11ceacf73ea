/**
 * Drafts change when tokens are made, and never which: greedy and seeded texts with them are those
 * without, to the byte. On the model inside zinc, and on the hybrid of ../shared where that is, on
 * one device and spread over two parts.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { DraftJudge } from "../../src/engine/draft-account.ts";
import type { Drafter } from "../../src/engine/drafter.ts";
import { Engine } from "../../src/engine/engine.ts";
import { NgramDrafter } from "../../src/engine/ngram-drafter.ts";
import { HostSampler } from "../../src/engine/sampler.ts";
import { completeSampling, type Sampling } from "../../src/engine/sampling.ts";
import { openModelFile, openTokenizer } from "../../src/index.ts";
import { describeModel } from "../../src/model/architectures.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

setDefaultTimeout(600_000);

const hybridPath = join(import.meta.dir, "../../../shared/models/spark-qwen35-Q8_0.gguf");
const families = [
  ["attention alone", undefined, 1],
  ["a hybrid", hybridPath, 1],
  ["attention alone over two devices", undefined, 2],
  ["a hybrid over two devices", hybridPath, 2],
] as const;

/** Tries every draft that there is room for in a step of four rows. */
const eager: DraftJudge = {
  observe() {},
  knows: () => true,
  worthwhile: (texts) => Math.max(4 - texts, 0),
};

/** What both models answer with the sentence itself. */
const sentence = "The small dog found a red ball and the old cat found a blue hat.";
const echo = `<|im_start|>user\nRepeat: ${sentence}<|im_end|>\n<|im_start|>assistant\n`;

function prompt(length: number, seed: number): number[] {
  const random = new SeededRandom(seed + 1);
  return Array.from({ length }, () => 300 + random.below(3000));
}

interface Made {
  readonly tokens: readonly number[];
  readonly finish: string;
  readonly drafted: number;
  readonly accepted: number;
}

async function make(
  engine: Engine,
  tokens: readonly number[],
  drafter: Drafter | null,
  { maxTokens = 40, endTokens = new Set<number>(), sampling = {} as Partial<Sampling> } = {},
): Promise<Made> {
  engine.forget();
  const sampler = new HostSampler(completeSampling({ temperature: 0, ...sampling }));
  let [drafted, accepted] = [0, 0];
  const onDrafts = (count: number, right: number) => {
    drafted += count;
    accepted += right;
  };
  const more = { prompt: tokens, maxTokens, endTokens, sampler, drafter, onDrafts };
  const text = engine.generate(more);
  const made: number[] = [];
  for (;;) {
    const { done, value } = await text.next();
    if (done === true) return { tokens: made, finish: value, drafted, accepted };
    made.push(value);
  }
}

/** Knows what comes, and errs in every draft from its `right`-th token on. */
function knowing(promptLength: number, answer: readonly number[], right: number): Drafter {
  return {
    guess(tokens, count) {
      const at = tokens.length - promptLength;
      const coming = answer.slice(at, at + count);
      const guess = coming.map((token, i) => (i < right ? token : token + 1));
      return guess.length === 0 ? undefined : { tokens: guess, evidence: 3 };
    },
  };
}

describe.each(families)("with %s", (_name, path, deviceCount) => {
  const missing = noGpu ?? (path === undefined || existsSync(path) ? undefined : "no ../shared");

  describe.skipIf(missing !== undefined)("a text with drafts", () => {
    let engine: Engine;
    let repeating: readonly number[];

    beforeAll(async () => {
      const file = await openModelFile(path);
      repeating = openTokenizer(file)?.encode(echo, { special: true }) ?? [];
      const gpus = Array.from({ length: deviceCount }, () => testGpu());
      engine = await Engine.loadOver(gpus, () => describeModel(file), {
        ...{ parallel: 3, contextTokens: 256, deterministic: true },
        ...{ drafts: "ngram", draftJudge: eager },
      });
    });

    afterAll(() => engine.close());

    test.each([0, 1, 2, 3])("is the same if %p tokens of each draft are right", async (right) => {
      const text = prompt(20, 3);
      const plain = await make(engine, text, null);
      expect(plain).toMatchObject({ drafted: 0, accepted: 0, finish: "length" });
      const drafted = await make(engine, text, knowing(text.length, plain.tokens, right));
      expect(drafted.tokens).toEqual(plain.tokens);
      expect(drafted.drafted).toBeGreaterThan(15);
      if (right === 0) expect(drafted.accepted).toBe(0);
      else expect(drafted.accepted).toBeGreaterThan(8 + 4 * right);
      expect(engine.stats).toMatchObject({ waitingCount: 0, runningCount: 0 });
    });

    test("is the same with a seed, whatever part of the drafts is right", async () => {
      const sampling = { temperature: 1.2, topK: 50, topP: 0.98, minP: 0, seed: 5 };
      const text = prompt(20, 4);
      const plain = await make(engine, text, null, { sampling });
      for (const right of [0, 2, 3]) {
        const drafter = knowing(text.length, plain.tokens, right);
        const drafted = await make(engine, text, drafter, { sampling });
        expect(drafted.tokens).toEqual(plain.tokens);
        expect(drafted.drafted).toBeGreaterThan(15);
      }
    });

    test("is the same where drafts are looked up", async () => {
      const plain = await make(engine, repeating, null);
      const drafted = await make(engine, repeating, new NgramDrafter());
      expect(drafted.tokens).toEqual(plain.tokens);
      expect(drafted.accepted).toBeGreaterThan(2);
    });

    test("ends where it ends, also in the middle of a draft", async () => {
      const text = prompt(20, 3);
      const plain = await make(engine, text, null);
      const drafter = () => knowing(text.length, plain.tokens, 3);
      for (const maxTokens of [1, 2, 3, 4, 5, 6, 7]) {
        const drafted = await make(engine, text, drafter(), { maxTokens });
        expect(drafted.tokens).toEqual(plain.tokens.slice(0, maxTokens));
        expect(drafted.finish).toBe("length");
      }
      const end = plain.tokens[9] ?? 0;
      const endTokens = new Set([end]);
      const drafted = await make(engine, text, drafter(), { endTokens });
      const expected = plain.tokens.slice(0, plain.tokens.indexOf(end));
      expect(drafted).toMatchObject({ tokens: expected, finish: "stop" });
    });

    test("is the same beside others with drafts of their own", async () => {
      const texts = [prompt(20, 5), prompt(33, 6), repeating];
      const plain: Made[] = [];
      for (const text of texts) plain.push(await make(engine, text, null));
      const drafted = await Promise.all(
        texts.map((text, i) =>
          make(engine, text, knowing(text.length, plain[i]?.tokens ?? [], i + 1)),
        ),
      );
      expect(drafted.map(({ tokens }) => tokens)).toEqual(plain.map(({ tokens }) => tokens));
      // Where texts take turns on several devices, those alone are guessed for.
      const accepted = drafted.reduce((sum, made) => sum + made.accepted, 0);
      if (deviceCount === 1) expect(accepted).toBeGreaterThan(10);
    });

    test("is asked for no drafts where the host chooses the tokens", async () => {
      const sampling = { repeatPenalty: 1.3 };
      const drafted = await make(engine, repeating, new NgramDrafter(), { sampling });
      expect(drafted.drafted).toBe(0);
    });

    test("gives everything back", () => {
      expect(engine.stats).toMatchObject({ waitingCount: 0, runningCount: 0 });
      engine.forget();
      expect(engine.stats.freeBlockCount * 32).toBe(engine.plan.cacheTokens);
    });
  });
});
