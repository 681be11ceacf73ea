/**
 * Measures layouts of the same work against each other, on the weights of the model that needs it.
 * Nothing of the model is written: inputs and results lie in memory of the race.
 */
import { invariant } from "../errors.ts";
import type { Contest } from "../kernels/tunings.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { Pipelines } from "../vulkan/pipeline.ts";
import { ProgramTimer } from "../vulkan/profiler.ts";
import { Program } from "../vulkan/program.ts";
import { Result, VulkanError } from "../vulkan/result.ts";
import { areAlike, beats, winnerOf } from "./race-judge.ts";
import { RaceMemory } from "./race-memory.ts";

/** Weights of a lap, and of what runs between two: together far more than caches hold. */
const lapBytes = 128 << 20;
const lapDispatchesMax = 64;
/** Cards that idle are slow, and making pipelines lets them idle. */
const warmUpMs = 20;
const roundCount = 2;
/** Of each layout in a round; the fastest counts. Fast cards take more of them. */
const lapsLeast = 4;
const lapsMost = 32;
/** Of a round, in which those are taken. */
const roundMs = 30;
/** Of the time for a race, what may be spent on making pipelines. */
const preparationShare = 0.7;

export interface RaceResult {
  /** One of the layouts; the first if none is better. */
  readonly winner: object;
  /** Of the winner over the first. */
  readonly speedup: number;
}

/** A program that takes one layout over the weights of several layers. */
interface Lap {
  readonly program: Program;
  readonly timer: ProgramTimer;
}

/** A layout that takes part. */
interface Runner extends Lap {
  readonly candidate: object;
  readonly results: Float32Array;
}

export class Race implements Disposable {
  readonly #gpu: Gpu;
  /** What loses is kept nowhere. */
  readonly #pipelines: Pipelines;
  readonly #memory: RaceMemory;
  readonly #owned: DisposableStack;

  /** For all work that may be raced or run in between. Throws a "memory" error, holding nothing. */
  constructor(gpu: Gpu, contests: readonly Contest[]) {
    using owned = new DisposableStack();
    const memory = owned.use(new RaceMemory(gpu, contests));
    this.#gpu = gpu;
    this.#memory = memory;
    this.#pipelines = owned.adopt(new Pipelines(gpu.device), (pipelines) => pipelines.close());
    this.#owned = owned.move();
  }

  /**
   * `contests` are the same work on several layers, `others` what a model does between them. It
   * ends at `deadline`, or soon after; what was not measured twice by then has lost.
   */
  run(contests: readonly Contest[], others: readonly Contest[], deadline: number): RaceResult {
    using laps = new DisposableStack();
    const [contest] = contests;
    invariant(contest !== undefined, "nothing to race");
    const none = { winner: usualOf(contest), speedup: 1 };
    const timeLeft = deadline - performance.now();
    if (timeLeft <= 0) return none;
    const runners = this.#prepare(laps, contests, deadline - timeLeft * (1 - preparationShare));
    const [usual] = runners;
    if (usual === undefined || runners.length === 1) return none;
    const between = this.#lapOf(laps, others, usualOf);
    const start = performance.now();
    while (performance.now() - start < warmUpMs) this.#time(usual, between);
    const rounds: number[][] = [];
    let left = runners;
    while (rounds.length < roundCount && left.length > 1) {
      const times = this.#round(left, between, deadline);
      if (times === undefined) break;
      rounds.push(runners.map((runner) => times.get(runner) ?? Number.POSITIVE_INFINITY));
      const usualTime = times.get(usual) ?? 0;
      left = left.filter((one) => one === usual || beats(times.get(one) ?? 0, usualTime));
    }
    const index = winnerOf(rounds);
    const winner = runners[index];
    if (index === 0 || winner === undefined) return none;
    const total = (i: number) => rounds.reduce((sum, times) => sum + (times[i] ?? 0), 0);
    return { winner: winner.candidate, speedup: total(0) / total(index) };
  }

  [Symbol.dispose](): void {
    this.#owned.dispose();
  }

  /** Those layouts that the driver can make in time and that give the same results. */
  #prepare(laps: DisposableStack, contests: readonly Contest[], until: number): Runner[] {
    const runners: Runner[] = [];
    const [{ candidates } = { candidates: [] }] = contests;
    for (const candidate of candidates) {
      const [usual] = runners;
      if (usual !== undefined && performance.now() > until) break;
      const lap = this.#lapOrFault(laps, contests, candidate);
      if (lap === undefined) continue;
      this.#memory.poison();
      this.#time(lap);
      const results = this.#results(contests);
      if (usual === undefined || areAlike(usual.results, results)) {
        runners.push({ ...lap, candidate, results });
      }
    }
    return runners;
  }

  /** A driver that cannot make a pipeline that nobody needs is no failure, unless it is gone. */
  #lapOrFault(
    laps: DisposableStack,
    contests: readonly Contest[],
    candidate: object,
  ): Lap | undefined {
    try {
      return this.#lapOf(laps, contests, () => candidate);
    } catch (error) {
      const isUsual = candidate === contests[0]?.candidates[0];
      const isFault = error instanceof VulkanError && error.result !== Result.ERROR_DEVICE_LOST;
      if (isFault && !isUsual) return undefined;
      throw error;
    }
  }

  /** Takes contests until they read enough; undefined without any. */
  #lapOf(
    laps: DisposableStack,
    contests: readonly Contest[],
    candidateOf: (contest: Contest) => object,
  ): Lap | undefined {
    const taken: Contest[] = [];
    let bytes = 0;
    for (const contest of contests.slice(0, lapDispatchesMax)) {
      if (bytes >= lapBytes) break;
      bytes += contest.weightBytes;
      taken.push(contest);
    }
    if (taken.length === 0) return undefined;
    const { device } = this.#gpu;
    const pipelines = this.#pipelines;
    const timer = laps.adopt(new ProgramTimer(device), (own) => own.free());
    const label = `a race of ${contests[0]?.key}`;
    const program = laps.adopt(new Program(device, pipelines, label, { timer }), (own) =>
      own.free(),
    );
    const context = { program, pipelines, capabilities: device.capabilities };
    for (const contest of taken) contest.record(context, candidateOf(contest), this.#memory.slices);
    program.seal();
    return { program, timer };
  }

  /** The best time of each in several laps, in milliseconds; undefined if there is no time. */
  #round(
    runners: readonly Runner[],
    between: Lap | undefined,
    deadline: number,
  ): Map<Runner, number> | undefined {
    const best = new Map<Runner, number>();
    const enough = performance.now() + roundMs;
    for (let lap = 0; lap < lapsMost; lap++) {
      if (lap >= lapsLeast && performance.now() > enough) break;
      // They take turns, so that what disturbs the device disturbs all.
      for (const runner of runners) {
        if (performance.now() > deadline) return lap === 0 ? undefined : best;
        const time = this.#time(runner, between);
        best.set(runner, Math.min(time, best.get(runner) ?? Number.POSITIVE_INFINITY));
      }
    }
    return best;
  }

  /** Runs a lap, behind one that makes caches forget its weights. */
  #time({ program, timer }: Lap, between?: Lap): number {
    const { timeline } = this.#gpu;
    for (const { commands, label } of [...(between ? [between.program] : []), program]) {
      // One behind the other: a timer may start while what is in front still runs.
      timeline.wait(timeline.submit(commands, label));
    }
    return timer.milliseconds();
  }

  /** What the last of the work has written. */
  #results(contests: readonly Contest[]): Float32Array {
    const [contest] = contests;
    invariant(contest !== undefined, "nothing to race");
    return this.#memory.read(contest.results(this.#memory.slices));
  }
}

function usualOf({ key, candidates: [usual] }: Contest): object {
  invariant(usual !== undefined, `${key} has no layout`);
  return usual;
}
