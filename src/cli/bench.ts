/**
 * `zinc bench`: prefill and decode speed, measured, as a share of what the device's memory allows.
 */
import { describeCache } from "../engine/cache-description.ts";
import type { Engine } from "../engine/engine.ts";
import { UserError } from "../errors.ts";
import { openModelFile, type LanguageModel } from "../index.ts";
import { measureReadBandwidth } from "../kernels/bandwidth.ts";
import { blockTokens } from "../kernels/step.ts";
import { formatBytes } from "../math.ts";
import { describeModel } from "../model/architectures.ts";
import type { Model } from "../model/model.ts";
import {
  Measurement,
  secondTurnTokens,
  texts,
  textTokens,
  type DecodeRow,
  type PrefillRow,
  type ReuseRow,
} from "./bench/measure.ts";
import {
  formatSpeculation,
  measureSpeculation,
  speculationTokens,
  type SpeculationRow,
} from "./bench/speculation.ts";
import { formatTuning, tuningRows, type TuningRow } from "./bench/tuning.ts";
import { command } from "./command.ts";
import { integer, integers, toggle, type Values } from "./flag.ts";
import { contextFlags, modelEnvironment, modelFlags, outputFlags, placeFlags } from "./flags.ts";
import { runExitCodes } from "./manual.ts";
import { chooseModel } from "./model-choice.ts";
import { loadModel } from "./model-options.ts";
import { setQuiet, writeOut } from "./output.ts";

const flags = {
  ...modelFlags,
  promptTokens: integers("list", "lengths of the prompts to prefill (default 512)", 1),
  maxTokens: integer("n", "tokens to decode (default 128)", { min: 2 }, { alias: "n" }),
  depth: integers("list", "tokens in the cache before decoding (default 0)"),
  streams: integers("list", "texts made at once (default 1)", 1),
  prefixReuse: toggle("also the second turn of a chat, with the first in the cache"),
  spec: toggle("also one text with guesses ahead, some right, some wrong"),
  tune: toggle("first race layouts of kernels anew; =off does without"),
  repeats: integer(
    "r",
    "repetitions, of which the median counts (default 3)",
    { min: 1, max: 1000 },
    { alias: "r" },
  ),
  kvType: contextFlags.kvType,
  deterministic: contextFlags.deterministic,
  ...placeFlags,
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

    How kernels for one text are laid out best is measured at a model's first start on a GPU, for
    two seconds at most, and kept in the cache folder. With --tune it is measured anew and more
    thoroughly, on a processor too, and what won is listed; --tune=off shows the speed without.
  `,
  examples: {
    "zinc bench -m llama-3.1-8b": "the usual measure",
    "zinc bench -p 128,512 -n 128 --depth 0,4096": "several lengths, and a full cache",
    "zinc bench --streams 1,4,16": "several texts at once",
    "zinc bench --prefix-reuse": "how soon the second turn of a chat begins",
    "zinc bench --tune": "choose anew how kernels are laid out on this device",
    "zinc bench --spec": "what guessing ahead brings, and what it costs when it is wrong",
  },
  environment: modelEnvironment,
  exitCodes: runExitCodes,
  flags: { ...flags, promptTokens: { ...flags.promptTokens, alias: "p" } },
  async run(values) {
    setQuiet(values.quiet === true);
    const { tune } = values;
    if (tune === true && values.deterministic === true) throw neverTuned();
    const sizes = sizesOf(values);
    const described = await requireContext(values.model, sizes.contextTokens);
    const isSpread = values.devices !== undefined && values.devices.length > 1;
    const own = described.predictor === undefined || isSpread ? "ngram" : "mtp";
    const draft = values.spec === true ? own : "off";
    const wishes = { ...sizes, tune };
    using model = await loadModel({ ...values, ctx: sizes.contextTokens, draft }, wishes);
    requireRoom(model, sizes);
    const results = await measure(model, values);
    const { readBytesPerSecond, ...rows } = results;
    const { plan } = model.engine;
    const report = {
      device: { ...describeDevices(model.engine), readGBs: readBytesPerSecond / 1e9 },
      model: { name: model.config.name, weightBytes: plan.weightBytes, cache: describeCache(plan) },
      ...(tune === true && { tuning: tuningRows(model.engine) }),
      ...rows,
    };
    await writeOut(values.json === true ? `${JSON.stringify(report)}\n` : format(report));
  },
});

function neverTuned(): UserError {
  const message = "--tune and --deterministic exclude each other";
  return new UserError("usage", message, "deterministic results need untuned kernels");
}

/** What the measurements need of the engine. */
function sizesOf(values: Values<typeof flags>) {
  const { promptTokens = [512], maxTokens = 128, depth = [0], streams = [1] } = values;
  const { prefixReuse = false, spec = false } = values;
  const prompt = Math.max(...promptTokens);
  const parallel = Math.max(...streams);
  const text = textTokens(Math.max(...depth), parallel, maxTokens);
  const chat = prefixReuse ? prompt + maxTokens + secondTurnTokens + 1 : 0;
  const guessed = spec ? speculationTokens(maxTokens) : 0;
  const alone = Math.max(prompt, chat + 2 * blockTokens, guessed);
  return {
    contextTokens: Math.max(prompt, chat, text, guessed),
    // Texts share no blocks, and one more is copied where a prompt ends within a block.
    cacheTokens: Math.max(alone, parallel * (text + 2 * blockTokens)),
    parallel,
    // The end of each prompt, and of a chat also the end of its answer.
    checkpoints: prefixReuse || Math.max(...depth) > 0 ? 2 * parallel + 6 : 0,
  };
}

/** Loading would say so, too, and advise a flag that this command does not have. */
async function requireContext(path: string | undefined, tokens: number): Promise<Model> {
  using file = await openModelFile(chooseModel(path));
  const model = describeModel(file, { predicts: true });
  const { name, contextLength } = model.config;
  if (tokens <= contextLength) return model;
  throw new UserError(
    "usage",
    `this needs a context of ${tokens} tokens and ${name} has ${contextLength}`,
    "choose smaller numbers for -p, -n or --depth",
  );
}

/** Texts that had to wait for each other would measure something else. */
function requireRoom({ engine }: LanguageModel, sizes: ReturnType<typeof sizesOf>): void {
  const { sequenceCapacity, cacheTokens } = engine.plan;
  if (sequenceCapacity >= sizes.parallel && cacheTokens >= sizes.cacheTokens) return;
  throw new UserError(
    "memory",
    `there is room for ${texts(sequenceCapacity)} and ${cacheTokens} tokens, ` +
      `and this needs ${sizes.parallel} and ${sizes.cacheTokens}`,
    "choose smaller numbers for --streams or --depth",
  );
}

async function measure({ engine }: LanguageModel, values: Values<typeof flags>) {
  const { promptTokens = [512], maxTokens = 128, repeats = 3, prefixReuse = false } = values;
  const { depth: depths = [0], streams = [1], spec = false } = values;
  const readBytesPerSecond = measureReading(engine);
  const options = { steps: maxTokens, repeats, readBytesPerSecond };
  using measurement = new Measurement(engine, options);
  const prefill: PrefillRow[] = [];
  for (const tokens of promptTokens) prefill.push(await measurement.prefill(tokens));
  const decode: DecodeRow[] = [];
  for (const depth of depths) {
    for (const count of streams) decode.push(await measurement.decode(depth, count));
  }
  const reuse: ReuseRow[] = [];
  if (prefixReuse) {
    for (const tokens of promptTokens) reuse.push(await measurement.reuse(tokens));
  }
  const speculation = spec ? await measureSpeculation(engine, options) : [];
  return {
    ...{ prefill, decode, readBytesPerSecond },
    ...(prefixReuse && { prefixReuse: reuse }),
    ...(spec && { speculation }),
  };
}

function describeDevices({ gpus }: Engine): { name: string; driver: string } {
  const all = gpus.map(({ device }) => device.capabilities);
  const drivers = new Set(all.map(({ driver }) => `${driver.name} ${driver.info}`));
  return { name: all.map(({ name }) => name).join(" + "), driver: [...drivers].join(" + ") };
}

/** Bytes a second. A step reads the weights of one device after the other. */
function measureReading({ gpus, plan: { stages, weightBytes } }: Engine): number {
  const seconds = gpus.map((gpu, i) => (stages[i]?.weightBytes ?? 0) / measureReadBandwidth(gpu));
  return weightBytes / seconds.reduce((sum, value) => sum + value, 0);
}

interface Report {
  readonly device: { readonly name: string; readonly driver: string; readonly readGBs: number };
  readonly model: { readonly name: string; readonly weightBytes: number; readonly cache: string };
  readonly tuning?: readonly TuningRow[];
  readonly prefill: readonly PrefillRow[];
  readonly decode: readonly DecodeRow[];
  readonly prefixReuse?: readonly ReuseRow[];
  readonly speculation?: readonly SpeculationRow[];
}

function format(report: Report): string {
  const { device, model, tuning, prefill, decode, prefixReuse = [], speculation = [] } = report;
  const lines = [
    `${device.name} (${device.driver}), reads ${device.readGBs.toFixed(1)} GB/s`,
    `${model.name}, ${formatBytes(model.weightBytes)} of weights, cache ${model.cache}`,
    ...(tuning === undefined ? [] : formatTuning(tuning)),
    ...prefill.map(({ tokens, tokS }) => `prefill ${tokens} tokens: ${tokS.toFixed(1)} tok/s`),
    ...decode.map(formatDecode),
    ...prefixReuse.map(formatReuse),
    ...speculation.map(formatSpeculation),
  ];
  return `${lines.join("\n")}\n`;
}

function formatDecode(row: DecodeRow): string {
  const { depth, streams, tokS } = row;
  const floor =
    row.roofline === null ? "from cache" : `${(row.roofline * 100).toFixed(1)}% of the floor`;
  const each = streams === 1 ? "" : `, ${(tokS / streams).toFixed(1)} each`;
  return (
    `decode at depth ${depth}, ${texts(streams)}: ${tokS.toFixed(1)} tok/s${each} (${floor}), ` +
    `${row.gpuMsPerStep.toFixed(3)} ms GPU and ${row.hostMsPerStep.toFixed(3)} ms host ` +
    `a step, ${Number(row.submitsPerStep.toFixed(2))} submit, ` +
    `${row.dispatchesPerStep} dispatches, ${row.barriersPerStep} barriers`
  );
}

function formatReuse(row: ReuseRow): string {
  const { tokens, answerTokens, cachedTokens, newTokens, firstMs, secondMs, share } = row;
  return (
    `chat of ${tokens} tokens: first token after ${firstMs.toFixed(0)} ms; second turn, behind ` +
    `an answer of ${answerTokens}, after ${secondMs.toFixed(0)} ms ` +
    `(${(share * 100).toFixed(1)}%), ` +
    `${cachedTokens} tokens from the cache and ${newTokens} computed`
  );
}
