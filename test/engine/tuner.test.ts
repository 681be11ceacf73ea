/** Races when a model is loaded, on a test device that says it was a GPU. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TuningProgress } from "../../src/engine/tuner.ts";
import type { Capabilities } from "../../src/vulkan/capabilities.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { deviation, feed, loadBytes } from "../helpers/loaded.ts";
import { tinyLlama } from "../helpers/tiny-llama.ts";

const root = mkdtempSync(join(tmpdir(), "zinc-tuner-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folderCount = 0;
const freshFolder = () => join(root, `${folderCount++}`);

const shape = { layers: 2, width: 64, heads: 4, kvHeads: 2, headWidth: 16, vocabulary: 96 };
const modelOf = (feedForward: number) =>
  tinyLlama({ ...shape, feedForward, dtype: "Q8_0", contextLength: 64 }).bytes;
const model = modelOf(160);
const prompt = [1, 2, 3, 4, 5, 6, 7];

/** All that a step of one row multiplies with. */
const shapes = [
  "linear Q8_0 160x64 gated by silu, of normed float, to float",
  "linear Q8_0 32x64, of normed float, to float",
  "linear Q8_0 64x160, of float, to float",
  "linear Q8_0 64x64, of float, to float",
  "linear Q8_0 64x64, of normed float, to float",
  "linear Q8_0 96x64, of normed float, to float",
];

interface Start {
  readonly folder?: string;
  readonly bytes?: Uint8Array;
  readonly anew?: boolean;
  readonly deterministic?: boolean;
}

/** Loads a model, and tells what was raced and said. */
async function start({ folder, bytes = model, anew, deterministic = false }: Start) {
  const progress: TuningProgress[] = [];
  const warnings: string[] = [];
  const tuning = {
    ...{ folder, anew },
    onProgress: (step: TuningProgress) => progress.push(step),
    onWarning: (message: string) => warnings.push(message),
  };
  const engine = await loadBytes(bytes, { drafts: "off", profile: true, deterministic, tuning });
  try {
    const { tuning: results } = engine;
    const raced = results.map((result) => result.shape).toSorted();
    const logits = feed(engine, prompt, 1);
    const pipelines = engine.profile().map((line) => line.pipeline);
    return { results, raced, progress, warnings, logits, pipelines };
  } finally {
    engine.close();
  }
}

interface Content {
  readonly tunings: Record<string, Record<string, number>>;
}

function contentOf(folder: string): Content {
  const [name = ""] = readdirSync(folder);
  return JSON.parse(readFileSync(join(folder, name), "utf8")) as Content;
}

describe.skipIf(noGpu !== undefined)("on a GPU", () => {
  let real: Capabilities;
  const pretend = (value: Capabilities) =>
    Object.defineProperty(testGpu().device, "capabilities", { value });
  beforeEach(() => {
    real = testGpu().device.capabilities;
    pretend({ ...real, kind: "integrated" });
  });
  afterEach(() => pretend(real));

  test("the first start races every shape, and the next one none", async () => {
    const folder = freshFolder();
    const first = await start({ folder });
    expect(first.raced).toEqual(shapes);
    expect(first.progress.map(({ done, total }) => `${done} of ${total}`)).toEqual([
      ...["0 of 6", "1 of 6", "2 of 6", "3 of 6", "4 of 6", "5 of 6"],
    ]);
    expect(Object.keys(contentOf(folder).tunings).toSorted()).toEqual(shapes);
    const second = await start({ folder });
    expect([second.raced, second.progress, second.warnings]).toEqual([[], [], []]);
    expect(second.pipelines.toSorted()).toEqual(first.pipelines.toSorted());
    expect(second.logits).toEqual(first.logits);
  });

  test("another model adds the shapes that are missing", async () => {
    const folder = freshFolder();
    await start({ folder });
    expect((await start({ folder, bytes: modelOf(224) })).raced).toEqual([
      "linear Q8_0 224x64 gated by silu, of normed float, to float",
      "linear Q8_0 64x224, of float, to float",
    ]);
    expect(Object.keys(contentOf(folder).tunings)).toHaveLength(8);
    expect((await start({ folder })).raced).toEqual([]);
  });

  test("what was chosen is used, and moves results by rounding alone", async () => {
    const folder = freshFolder();
    const untuned = await start({});
    const { results } = await start({ folder });
    // One row of W for a team is a neighbour of each usual layout.
    const chosen = results.map(({ shape: key, usual }) => [key, { ...usual, rows: 1 }]);
    const [name = ""] = readdirSync(folder);
    const content = { ...contentOf(folder), tunings: Object.fromEntries(chosen) };
    writeFileSync(join(folder, name), JSON.stringify(content));
    const tuned = await start({ folder });
    const rowsOf = ({ pipelines }: { pipelines: readonly string[] }) =>
      new Set(
        pipelines.flatMap((pipeline) => /^linear.*?\(\d+,\d+,(\d+)/.exec(pipeline)?.[1] ?? []),
      );
    expect([...rowsOf(untuned)]).toEqual(["2"]);
    expect([...rowsOf(tuned)]).toEqual(["1"]);
    expect(deviation(tuned.logits, untuned.logits)).toBeLessThan(1e-4);
  });

  test("nothing is raced for deterministic results, nor where nothing can be kept", async () => {
    const folder = freshFolder();
    expect((await start({ folder, deterministic: true })).raced).toEqual([]);
    expect((await start({})).raced).toEqual([]);
    expect(() => readdirSync(folder)).toThrow("ENOENT");
    writeFileSync(folder, "a file where the folder should be");
    const { raced, warnings } = await start({ folder });
    expect(raced).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining("could not be kept in")]);
  });
});

describe.skipIf(noGpu !== undefined)("on a processor", () => {
  test("nothing is raced unasked, and everything if it is asked for", async () => {
    const folder = freshFolder();
    expect((await start({ folder })).raced).toEqual([]);
    expect((await start({ folder, anew: true })).raced).toEqual(shapes);
    expect((await start({ folder, anew: true })).raced).toEqual(shapes);
    expect((await start({ folder })).raced).toEqual([]);
  });
});
