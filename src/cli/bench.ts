/**
 * `zinc bench`: prefill and decode speed, measured, as a share of what the device's memory allows.
 */
import type { Sequence } from "../engine/sequence.ts";
import { seededRandom } from "../engine/sampler.ts";
import { nextTurn } from "../engine/turn.ts";
import { UserError } from "../errors.ts";
import { openModelFile, type LanguageModel } from "../index.ts";
import { measureReadBandwidth } from "../kernels/bandwidth.ts";
import { formatBytes } from "../math.ts";
import { describeModel } from "../model/architectures.ts";
import { command } from "./command.ts";
import { integer, integers, type Values } from "./flag.ts";
import { contextFlags, deviceFlags, modelEnvironment, modelFlags, outputFlags } from "./flags.ts";
import { runExitCodes } from "./manual.ts";
import { chooseModel } from "./model-choice.ts";
import { loadModel } from "./model-options.ts";
import { setQuiet, writeOut } from "./output.ts";
import { Progress } from "./progress.ts";

const flags = {
  ...modelFlags,
  promptTokens: integers("list", "lengths of the prompts to prefill (default 512)", 1),
  maxTokens: integer("n", "tokens to decode (default 128)", { min: 2 }, { alias: "n" }),
  depth: integers("list", "tokens in the cache before decoding (default 0)"),
  streams: integers("list", "texts made at once; only 1 so far (default 1)", 1),
  repeats: integer(
    "r",
    "repetitions, of which the median counts (default 3)",
    { min: 1, max: 1000 },
    { alias: "r" },
  ),
  kvType: contextFlags.kvType,
  deterministic: contextFlags.deterministic,
  ...deviceFlags,
  ...outputFlags,
} as const;

export const benchCommand = command({
  name: "bench",
  summary: "Measure speed",
  description: `
    Measures prefill and decode in tokens a second. It warms up, repeats, prints medians, and
    never counts the first token of a text.

    Decode must read all weights for every token: the share of the floor compares it with the
    read bandwidth that is measured on the same device just before.
  `,
  examples: {
    "zinc bench -m llama-3.1-8b": "the usual measure",
    "zinc bench -p 128,512 -n 128 --depth 0,4096": "several lengths, and a full cache",
  },
  environment: modelEnvironment,
  exitCodes: runExitCodes,
  flags: { ...flags, promptTokens: { ...flags.promptTokens, alias: "p" } },
  async run(values) {
    setQuiet(values.quiet === true);
    const { promptTokens = [512], maxTokens = 128, depth = [0], streams = [1] } = values;
    if (streams.some((count) => count !== 1)) {
      throw new UserError(
        "usage",
        `--streams ${streams.join()}: only one text is made at a time`,
        "leave it out",
      );
    }
    const ctx = Math.max(...promptTokens, ...depth.map((tokens) => tokens + maxTokens + 1));
    await requireContext(values.model, ctx);
    using model = await loadModel({ ...values, ctx });
    const { prefill, decode, readBytesPerSecond } = await measure(model, values);
    const { name, driver } = model.engine.gpu.device.capabilities;
    const report = {
      device: { name, driver: `${driver.name} ${driver.info}`, readGBs: readBytesPerSecond / 1e9 },
      model: { name: model.config.name, weightBytes: model.engine.plan.weightBytes },
      prefill,
      decode,
    };
    await writeOut(values.json === true ? `${JSON.stringify(report)}\n` : format(report));
  },
});

/** Loading would say so, too, and advise a flag that this command does not have. */
async function requireContext(path: string | undefined, tokens: number): Promise<void> {
  using file = await openModelFile(chooseModel(path));
  const { name, contextLength } = describeModel(file).config;
  if (tokens <= contextLength) return;
  throw new UserError(
    "usage",
    `this needs a context of ${tokens} tokens and ${name} has ${contextLength}`,
    "choose smaller numbers for -p, -n or --depth",
  );
}

async function measure(
  model: LanguageModel,
  { promptTokens = [512], maxTokens = 128, depth: depths = [0], repeats = 3 }: Values<typeof flags>,
) {
  const readBytesPerSecond = measureReadBandwidth(model.engine.gpu);
  using bench = new Bench(model, maxTokens, repeats);
  const prefill: PrefillRow[] = [];
  for (const tokens of promptTokens) prefill.push(await bench.prefill(tokens));
  const decode: DecodeRow[] = [];
  for (const depth of depths) decode.push(await bench.decode(depth, readBytesPerSecond));
  return { prefill, decode, readBytesPerSecond };
}

type PrefillRow = Awaited<ReturnType<Bench["prefill"]>>;
type DecodeRow = Awaited<ReturnType<Bench["decode"]>>;

class Bench implements Disposable {
  readonly #model: LanguageModel;
  readonly #maxTokens: number;
  readonly #repeats: number;
  readonly #progress = new Progress("bench");
  readonly #random = seededRandom(1);

  constructor(model: LanguageModel, maxTokens: number, repeats: number) {
    this.#model = model;
    this.#maxTokens = maxTokens;
    this.#repeats = repeats;
  }

  async prefill(tokens: number) {
    const speeds = await this.#repeat(`prefill ${tokens}`, (sequence) => {
      const prompt = this.#tokens(tokens);
      const started = performance.now();
      this.#model.engine.append(sequence, prompt);
      return tokens / ((performance.now() - started) / 1000);
    });
    return { tokens, tokS: median(speeds) };
  }

  async decode(depth: number, readBytesPerSecond: number) {
    const { engine } = this.#model;
    const runs = await this.#repeat(`decode at ${depth}`, (sequence) => {
      if (depth > 0) engine.append(sequence, this.#tokens(depth));
      const steps = this.#tokens(this.#maxTokens + 1);
      let [hostMs, gpuMs, submits] = [0, 0, 0];
      // The first token of a stream is not counted.
      engine.append(sequence, steps.slice(0, 1));
      const started = performance.now();
      for (const token of steps.slice(1)) {
        engine.append(sequence, [token]);
        hostMs += engine.lastStep?.hostMs ?? 0;
        gpuMs += engine.lastStep?.gpuMs ?? 0;
        submits += engine.lastStep?.submits ?? 0;
      }
      const ms = performance.now() - started;
      return { ms, hostMs, gpuMs, submits };
    });
    const count = this.#maxTokens;
    const tokS = count / (median(runs.map(({ ms }) => ms)) / 1000);
    const bytesPerStep =
      engine.model.stepBytes +
      engine.plan.stateBytes +
      (depth + count / 2) * engine.plan.cacheBytesPerToken;
    const share = (tokS * bytesPerStep) / readBytesPerSecond;
    return {
      depth,
      streams: 1,
      tokS,
      submitsPerStep: median(runs.map(({ submits }) => submits)) / count,
      dispatchesPerStep: engine.lastStep?.dispatches ?? 0,
      barriersPerStep: engine.lastStep?.barriers ?? 0,
      hostMsPerStep: median(runs.map(({ hostMs }) => hostMs)) / count,
      gpuMsPerStep: median(runs.map(({ gpuMs }) => gpuMs)) / count,
      bytesPerStep,
      // More than all of it means that weights came from a cache: no statement about the memory.
      roofline: share <= 1 ? share : null,
    };
  }

  [Symbol.dispose](): void {
    this.#progress.clear();
  }

  /** Once to warm up, then the repetitions that count, each on an empty cache. */
  async #repeat<T>(label: string, run: (sequence: Sequence) => T): Promise<T[]> {
    const { engine } = this.#model;
    const results: T[] = [];
    for (let i = 0; i <= this.#repeats; i++) {
      this.#progress.step(i, this.#repeats, label);
      await nextTurn();
      const sequence = engine.createSequence();
      const result = run(sequence);
      engine.release(sequence);
      if (i > 0) results.push(result);
    }
    return results;
  }

  #tokens(count: number): number[] {
    const { vocabularySize } = this.#model.config;
    return Array.from({ length: count }, () => Math.floor(this.#random() * vocabularySize));
  }
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

interface Report {
  readonly device: { readonly name: string; readonly driver: string; readonly readGBs: number };
  readonly model: { readonly name: string; readonly weightBytes: number };
  readonly prefill: readonly PrefillRow[];
  readonly decode: readonly DecodeRow[];
}

function format({ device, model, prefill, decode }: Report): string {
  const lines = [
    `${device.name} (${device.driver}), reads ${device.readGBs.toFixed(1)} GB/s`,
    `${model.name}, ${formatBytes(model.weightBytes)} of weights`,
    ...prefill.map(({ tokens, tokS }) => `prefill ${tokens} tokens: ${tokS.toFixed(1)} tok/s`),
    ...decode.map((row) => {
      const floor =
        row.roofline === null ? "from cache" : `${(row.roofline * 100).toFixed(1)}% of the floor`;
      return (
        `decode at depth ${row.depth}: ${row.tokS.toFixed(1)} tok/s (${floor}), ` +
        `${row.gpuMsPerStep.toFixed(3)} ms GPU and ${row.hostMsPerStep.toFixed(3)} ms host ` +
        `a step, ${row.submitsPerStep} submit, ${row.dispatchesPerStep} dispatches, ` +
        `${row.barriersPerStep} barriers`
      );
    }),
  ];
  return `${lines.join("\n")}\n`;
}
