/**
 * Chooses layouts for a device by measurement: what the recorded step of one row asks about, and no
 * file of earlier runs knows, is raced once when a model is loaded.
 */
import { UserError } from "../errors.ts";
import { Tunings, type Contest } from "../kernels/tunings.ts";
import type { Gpu } from "../vulkan/gpu.ts";
import { Race } from "./race.ts";
import type { Stage } from "./stage.ts";
import { nextTurn } from "./turn.ts";
import { TuningFile } from "./tuning-file.ts";

export interface TuningWishes {
  /** Where choices are kept between runs; nothing is raced unasked if nowhere. */
  readonly folder?: string | undefined;
  /** Race everything, on a processor too, and take more time for it. */
  readonly anew?: boolean | undefined;
  readonly onWarning?: ((message: string) => void) | undefined;
  readonly onProgress?: ((progress: TuningProgress) => void) | undefined;
}

export interface TuningProgress {
  readonly deviceName: string;
  /** Shapes of work that were raced. */
  readonly done: number;
  readonly total: number;
}

/** What a race has found. */
export interface TuningResult {
  readonly deviceName: string;
  readonly shape: string;
  /** The layout by the kernel's own rule. */
  readonly usual: object;
  readonly chosen: object;
  /** Of what was chosen over the usual one. */
  readonly speedup: number;
}

/** Time for all races of a start: long enough to find most, too short to annoy. */
const budgetMs = 2000;
/** For who has asked. */
const budgetAnewMs = 15_000;

export class Tuner {
  /** For the programs of the device. */
  readonly tunings: Tunings;
  readonly #gpu: Gpu;
  readonly #wishes: TuningWishes;
  readonly #file: TuningFile | undefined;

  constructor(gpu: Gpu, wishes: TuningWishes) {
    const { folder, anew = false, onWarning = () => {} } = wishes;
    this.#gpu = gpu;
    this.#wishes = wishes;
    this.#file = folder === undefined ? undefined : new TuningFile(folder, this.#facts, onWarning);
    this.tunings = new Tunings(anew ? [] : this.#file?.read());
  }

  /** Races what is not known yet of a part of a model, whose weights must be loaded. */
  async tune(stage: Stage): Promise<readonly TuningResult[]> {
    const { anew = false, onWarning = () => {} } = this.#wishes;
    // To a processor, making pipelines costs more than the best of them saves.
    if (!anew && this.#facts.kind === "cpu") return [];
    const contests = this.tunings.listen(() => stage.prepareOne());
    const shapes = Object.values(Object.groupBy(contests, ({ key }) => key)) as Contest[][];
    const unknown = shapes.filter(([contest]) => contest && !this.tunings.knows(contest));
    if (unknown.length === 0) return [];
    // Who cannot keep a choice would have to measure at every start.
    const isKept = this.#file?.add([]) === true;
    if (!isKept && !anew) return [];
    try {
      const results = await this.#race(unknown, contests);
      if (isKept) this.#file?.add(results.map(({ shape, chosen }) => [shape, chosen]));
      if (results.some(({ usual, chosen }) => usual !== chosen)) stage.renew();
      return results;
    } catch (error) {
      if (anew || !(error instanceof UserError && error.kind === "memory")) throw error;
      onWarning(`kernels stay untuned: ${error.message}`);
      return [];
    }
  }

  get #facts() {
    return this.#gpu.device.capabilities;
  }

  /** The shapes that read most come first, and take the largest share of the time. */
  async #race(
    shapes: readonly (readonly Contest[])[],
    contests: readonly Contest[],
  ): Promise<TuningResult[]> {
    const { anew = false, onProgress = () => {} } = this.#wishes;
    const deviceName = this.#facts.name;
    const ordered = shapes.toSorted((a, b) => bytesOf(b) - bytesOf(a));
    const end = performance.now() + (anew ? budgetAnewMs : budgetMs);
    const results: TuningResult[] = [];
    using race = new Race(this.#gpu, contests);
    for (const [done, shape] of ordered.entries()) {
      const [contest] = shape;
      if (contest === undefined) continue;
      onProgress({ deviceName, done, total: ordered.length });
      await nextTurn();
      const others = contests.filter(({ key }) => key !== contest.key);
      const left = ordered.slice(done);
      const share = Math.max(bytesOf(shape) / bytesOf(left.flat()), 1 / left.length);
      const now = performance.now();
      // What time does not suffice for stays as it is: the next start shall be quick.
      const { winner, speedup } = race.run(shape, others, now + (end - now) * share);
      this.tunings.set(contest.key, winner);
      const usual = contest.candidates[0] ?? winner;
      results.push({ deviceName, shape: contest.key, usual, chosen: winner, speedup });
    }
    return results;
  }
}

function bytesOf(contests: readonly Contest[]): number {
  return contests.reduce((sum, { weightBytes }) => sum + weightBytes, 0);
}
