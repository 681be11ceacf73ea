/**
 * Guesses by a model's own layers: they are those of plain loops, wherever a text stands and
 * whatever was wrong before, and they change no text.
 */
import { describe, expect, setDefaultTimeout, spyOn, test } from "bun:test";
import type { DraftJudge } from "../../src/engine/draft-account.ts";
import { Engine } from "../../src/engine/engine.ts";
import { PredictedTokens } from "../../src/engine/lookahead.ts";
import { HostSampler } from "../../src/engine/sampler.ts";
import { completeSampling } from "../../src/engine/sampling.ts";
import { openGgufBytes } from "../../src/gguf/file.ts";
import { describeModel } from "../../src/model/architectures.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { Qwen35Reference } from "../helpers/qwen35-reference.ts";
import { tinyQwen35 } from "../helpers/tiny-qwen35.ts";

setDefaultTimeout(600_000);

/** Tries `depth` tokens ahead, or nothing from a certain call on. */
function eager(depth: number, calls = Number.POSITIVE_INFINITY): DraftJudge {
  let count = 0;
  return {
    observe() {},
    knows: () => true,
    worthwhile: (texts) => (count++ < calls ? depth * texts : 0),
  };
}

async function make(engine: Engine, prompt: readonly number[], drafter?: null) {
  const sampler = new HostSampler(completeSampling({ temperature: 0 }));
  const endTokens = new Set<number>();
  const made: number[] = [];
  for await (const token of engine.generate({
    ...{ prompt, maxTokens: 24, sampler, endTokens, drafter },
  })) {
    made.push(token);
  }
  return made;
}

const prompt = (length: number, seed: number) =>
  Array.from({ length }, (_unused, i) => (i * i * 7 + seed * 31) % 160);

/** Every token follows from the one before alone, and the layer behind sees it coming. */
function foresighted() {
  const [width, layers] = [96, 5];
  const model = tinyQwen35({ architecture: "qwen35", layers, extra: 1 });
  for (let i = 0; i <= layers; i++) {
    const mixer = i % 4 === 3 || i === layers ? "attn_output" : "ssm_out";
    for (const name of [mixer, "ffn_down"]) model.replace(`blk.${i}.${name}.weight`, () => 0);
  }
  model.replace(`blk.${layers}.nextn.eh_proj.weight`, (i) =>
    i % (2 * width) === Math.floor(i / (2 * width)) ? 1 : 0,
  );
  const norms = ["enorm", "shared_head_norm"].map((name) => `blk.${layers}.nextn.${name}.weight`);
  for (const norm of [...norms, "output_norm.weight"]) model.replace(norm, () => 1);
  return openGgufBytes("tiny.gguf", model.forge());
}

const architectures = [
  ["qwen35", 3],
  ["qwen35moe", 1],
] as const;

describe.skipIf(noGpu !== undefined).each(architectures)("%s", (architecture, depth) => {
  const file = openGgufBytes("tiny.gguf", tinyQwen35({ architecture, extra: 1 }).forge());
  const load = (draftJudge: DraftJudge) =>
    Engine.load(testGpu(), describeModel(file, { predicts: true }), {
      ...{ drafts: "mtp", parallel: 2, contextTokens: 96, deterministic: true, draftJudge },
    });

  test(`guesses ${depth} tokens ahead as plain loops do`, async () => {
    const engine = await load(eager(depth));
    const text = prompt(37, 1);
    const plain = await make(engine, text, null);
    const offer = spyOn(PredictedTokens.prototype, "offer");
    const made = await make(engine, text);
    const offers = offer.mock.calls.slice();
    offer.mockRestore();
    expect(made).toEqual(plain);
    expect(offers.length).toBeGreaterThan(5);
    const reference = new Qwen35Reference(file);
    for (const [length, guesses] of offers) {
      const logits = reference.guess([...text, ...plain].slice(0, length), depth);
      const expected = logits.map((values) => values.indexOf(Math.max(...values)));
      expect([length, ...guesses]).toEqual([length, ...expected]);
    }
    expect(engine.stats.totals.drafted).toBeGreaterThan(10);
    engine.close();
  });

  test("makes the same texts side by side, and where it gives up guessing", async () => {
    const engine = await load(eager(depth));
    const texts = [prompt(37, 1), prompt(20, 2)];
    const plain: number[][] = [];
    for (const text of texts) plain.push(await make(engine, text, null));
    expect(await Promise.all(texts.map((text) => make(engine, text)))).toEqual(plain);
    expect(engine.stats).toMatchObject({ waitingCount: 0, runningCount: 0 });
    engine.close();
    const weary = await load(eager(depth, 9));
    expect(await make(weary, prompt(37, 1))).toEqual(plain[0] ?? []);
    const { drafted } = weary.stats.totals;
    expect(drafted).toBeGreaterThan(2);
    expect(drafted).toBeLessThan(9 * depth);
    weary.close();
  });
});

test.skipIf(noGpu !== undefined)("guesses that are right make four tokens a step", async () => {
  const model = describeModel(foresighted(), { predicts: true });
  const engine = await Engine.load(testGpu(), model, {
    ...{ drafts: "mtp", contextTokens: 96, draftJudge: eager(3) },
  });
  const text = prompt(20, 1);
  const plain = await make(engine, text, null);
  const steps: number[] = [];
  engine.onStep = ({ rows }) => steps.push(rows);
  expect(await make(engine, text)).toEqual(plain);
  // The prompt gives the first of 24 tokens; the last step has room for three.
  expect(steps).toEqual([20, 4, 4, 4, 4, 4, 3]);
  expect(engine.stats.totals).toMatchObject({ drafted: 17, accepted: 17 });
  engine.close();
});

test.skipIf(noGpu !== undefined)("needs a file with such layers", async () => {
  const file = openGgufBytes("tiny.gguf", tinyQwen35({ architecture: "qwen35" }).forge());
  const model = describeModel(file, { predicts: true });
  const loading = Engine.load(testGpu(), model, { drafts: "mtp" });
  await expect(loading).rejects.toThrow("has no layers that guess further tokens (mtp)");
});

test.skipIf(noGpu !== undefined)("needs one device", async () => {
  const bytes = tinyQwen35({ architecture: "qwen35", extra: 1 }).forge();
  const describeOne = () => describeModel(openGgufBytes("tiny.gguf", bytes), { predicts: true });
  const loading = Engine.loadOver([testGpu(), testGpu()], describeOne, { drafts: "mtp" });
  await expect(loading).rejects.toThrow(
    "layers that guess further tokens (mtp) run on one device, and 2 are named",
  );
});
