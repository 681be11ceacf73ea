/** What `zinc bench` measures: prefill, decoding of several texts at once, and second turns. */
import type { Engine } from "../../engine/engine.ts";
import type { StepStats } from "../../engine/runner.ts";
import { HostSampler, seededRandom } from "../../engine/sampler.ts";
import { defaultSampling } from "../../engine/sampling.ts";
import { nextTurn } from "../../engine/turn.ts";
import { invariant } from "../../errors.ts";
import { Progress } from "../progress.ts";

export type PrefillRow = Awaited<ReturnType<Measurement["prefill"]>>;
export type DecodeRow = Awaited<ReturnType<Measurement["decode"]>>;
export type ReuseRow = Awaited<ReturnType<Measurement["reuse"]>>;

/** Steps that may pass until all texts decode: where nothing is left to prefill, they all begin. */
function startSteps(depth: number, streams: number): number {
  return depth === 0 || streams === 1 ? 1 : 64;
}

/** Tokens that a text may have in the end, of which the last is not fed. */
export function textTokens(depth: number, streams: number, steps: number): number {
  return Math.max(depth, 1) + steps + startSteps(depth, streams) - 1;
}

/** What a user says in a second turn. */
export const secondTurnTokens = 64;

export interface MeasurementOptions {
  /** Steps that a decoding measurement counts. */
  readonly steps: number;
  /** Of which the median counts. */
  readonly repeats: number;
  /** Of the device's memory, measured. */
  readonly readBytesPerSecond: number;
}

export class Measurement implements Disposable {
  readonly #engine: Engine;
  readonly #options: MeasurementOptions;
  readonly #progress = new Progress("bench");
  readonly #random = seededRandom(1);

  constructor(engine: Engine, options: MeasurementOptions) {
    this.#engine = engine;
    this.#options = options;
  }

  async prefill(tokens: number) {
    const engine = this.#engine;
    const speeds = await this.#repeat(`prefill of ${tokens} tokens`, async () => {
      const prompt = this.#tokens(tokens);
      const sequence = engine.createSequence();
      const started = performance.now();
      engine.append(sequence, prompt);
      const seconds = (performance.now() - started) / 1000;
      engine.release(sequence);
      return tokens / seconds;
    });
    return { tokens, tokS: median(speeds) };
  }

  /**
   * Texts with `depth` tokens each in the cache, which all make a token in every step. Several
   * devices share them: each step then has some of the texts.
   */
  async decode(depth: number, streams: number) {
    const { model, plan } = this.#engine;
    const { steps: count, readBytesPerSecond } = this.#options;
    const label = `decode at depth ${depth}, ${texts(streams)}`;
    const runs = await this.#repeat(label, () => this.#decodeOnce(depth, streams));
    const perStep = (of: (step: StepStats) => number) =>
      median(
        runs.map(({ steps }) => steps.reduce((sum, step) => sum + of(step), 0) / steps.length),
      );
    const stepsPerSecond = median(runs.map(({ ms, steps }) => (steps.length / ms) * 1000));
    const rowsPerStep = perStep(({ rows }) => rows);
    // The weights once, whatever the number of texts: of mixtures the experts of one row, which is
    // the least that can be.
    const bytesPerStep =
      model.stepBytes +
      Math.round(
        rowsPerStep *
          (plan.stateBytesPerSequence + Math.round((depth + count / 2) * plan.cacheBytesPerToken)),
      );
    // Devices that have a step each read at once.
    const readers = Math.min(streams, plan.stages.length);
    const share = (stepsPerSecond * bytesPerStep) / (readers * readBytesPerSecond);
    return {
      depth,
      streams,
      tokS: median(runs.map(({ ms, rows }) => (rows / ms) * 1000)),
      submitsPerStep: perStep(({ submits }) => submits),
      dispatchesPerStep: perStep(({ dispatches }) => dispatches),
      barriersPerStep: perStep(({ barriers }) => barriers),
      hostMsPerStep: perStep(({ hostMs }) => hostMs),
      gpuMsPerStep: perStep(({ gpuMs }) => gpuMs),
      bytesPerStep,
      // More than all of it means that weights came from a cache: no statement about the memory.
      roofline: share <= 1 ? share : null,
    };
  }

  /** A chat: how long its first turn lets wait for the first token, and how long the second. */
  async reuse(tokens: number) {
    const { steps: answerTokens } = this.#options;
    const runs = await this.#repeat(`second turn behind ${tokens} tokens`, async () => {
      const prompt = this.#tokens(tokens);
      const first = await this.#ask(prompt, answerTokens);
      const next = [...prompt, ...first.tokens, ...this.#tokens(secondTurnTokens)];
      const second = await this.#ask(next, 1);
      const { cachedTokens, firstTokenMs } = second;
      const newTokens = next.length - cachedTokens;
      return { firstMs: first.firstTokenMs, secondMs: firstTokenMs, cachedTokens, newTokens };
    });
    const of = (value: (run: (typeof runs)[number]) => number) => median(runs.map(value));
    const [firstMs, secondMs] = [of((run) => run.firstMs), of((run) => run.secondMs)];
    const cachedTokens = of((run) => run.cachedTokens);
    const newTokens = of((run) => run.newTokens);
    const share = secondMs / firstMs;
    return { tokens, answerTokens, cachedTokens, newTokens, firstMs, secondMs, share };
  }

  [Symbol.dispose](): void {
    this.#engine.onStep = undefined;
    this.#progress.clear();
  }

  /** The steps that count: from the first one behind that in which the last text has begun. */
  async #decodeOnce(depth: number, streams: number) {
    const prompts = Array.from({ length: streams }, () => this.#tokens(Math.max(depth, 1)));
    // Prompts go into the cache first, so that then all texts begin with the same step.
    if (depth > 0) await Promise.all(prompts.map((prompt) => this.#ask(prompt, 1)));
    const { steps: count } = this.#options;
    const enough = new AbortController();
    const steps: StepStats[] = [];
    let [begun, rows] = [0, 0];
    let [started, ended] = [0, 0];
    this.#engine.onStep = (stats) => {
      if (begun < streams) return;
      ended = performance.now();
      if (started === 0) {
        started = ended;
        return;
      }
      steps.push({ ...stats });
      rows += stats.rows;
      if (rows >= count * streams) enough.abort();
    };
    const onPrefill = () => {
      begun++;
    };
    const { signal } = enough;
    const maxTokens = count + startSteps(depth, streams);
    await Promise.all(prompts.map((prompt) => this.#ask(prompt, maxTokens, { signal, onPrefill })));
    this.#engine.onStep = undefined;
    const areWhole = steps.every((step) => step.rows === streams);
    invariant(
      rows >= count * streams && (areWhole || this.#engine.plan.stages.length > 1),
      `${steps.length} steps of ${texts(streams)}`,
    );
    return { ms: ended - started, steps, rows };
  }

  async #ask(
    prompt: readonly number[],
    maxTokens: number,
    more: { signal?: AbortSignal; onPrefill?: () => void } = {},
  ) {
    const started = performance.now();
    let [cachedTokens, firstTokenMs] = [0, 0];
    const tokens: number[] = [];
    for await (const token of this.#engine.generate({
      prompt,
      maxTokens,
      sampler: new HostSampler({ ...defaultSampling, seed: 1 }),
      endTokens: new Set(),
      drafter: null,
      onBegin: (count) => {
        cachedTokens = count;
      },
      ...more,
    })) {
      if (tokens.length === 0) firstTokenMs = performance.now() - started;
      tokens.push(token);
    }
    return { tokens, cachedTokens, firstTokenMs };
  }

  /** Once to warm up, then the repetitions that count, each on an empty cache. */
  async #repeat<T>(label: string, run: () => Promise<T>): Promise<T[]> {
    const { repeats } = this.#options;
    const results: T[] = [];
    for (let i = 0; i <= repeats; i++) {
      this.#progress.step(i, repeats, i === 0 ? `${label}, warming up` : label);
      await nextTurn();
      const result = await run();
      this.#engine.forget();
      if (i > 0) results.push(result);
    }
    return results;
  }

  #token(): number {
    return Math.floor(this.#random() * this.#engine.model.config.vocabularySize);
  }

  #tokens(count: number): number[] {
    return Array.from({ length: count }, () => this.#token());
  }
}

export function texts(count: number): string {
  return count === 1 ? "1 text" : `${count} texts`;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
