/**
 * Runs steps: through the one device, or from device to device in the order of the layers. Several
 * steps may be under way; each device takes them in the order in which they were launched. It does
 * as it is told and knows no texts.
 */
import { invariant } from "../errors.ts";
import type { OutputSampling } from "../kernels/sample.ts";
import type { ProfileLine } from "../vulkan/profiler.ts";
import type { TableChange } from "./paged-cache.ts";
import type { Stage, StageRun } from "./stage.ts";
import type { StepWork } from "./step-plan.ts";

/** What a step cost, on all devices together. */
export interface StepStats {
  readonly rows: number;
  /** Rows whose logits were wanted. */
  readonly outputs: number;
  readonly submits: number;
  readonly dispatches: number;
  readonly barriers: number;
  /** Time in which the host was busy and did not wait. */
  hostMs: number;
  /** Time in which it waited. */
  readonly waitMs: number;
  /** Read from the device when it is asked for, so ask before the next step. */
  readonly gpuMs: number;
}

/** A step under way. */
export interface Flight {
  readonly work: StepWork;
  readonly samplings: readonly OutputSampling[] | undefined;
  /** The hidden states of its rows can be read. */
  readonly hidden: boolean;
  /** The number of its memory. */
  readonly index: number;
  /** On each device that it has come to. */
  readonly runs: StageRun[];
  /** A program of its had to be recorded. */
  isNew: boolean;
  hostMs: number;
  waitMs: number;
}

export class Runner {
  readonly #stages: readonly Stage[];
  readonly #last: Stage;
  /** Oldest first. */
  #underway: Flight[] = [];
  /** The memory that the next step takes. */
  #next = 0;
  #landed: Flight | undefined;
  #lastStep: StepStats | undefined;

  /** In the order of the layers. */
  constructor(stages: readonly Stage[]) {
    const last = stages.at(-1);
    invariant(last !== undefined, "no device to run on");
    this.#stages = stages;
    this.#last = last;
  }

  /** Whether one more step may be under way. */
  get hasRoom(): boolean {
    return this.#underway.length < this.#last.flightCount;
  }

  /** Records what steps of so many rows, all of them sampled, will need: none waits for it then. */
  prepare(rows: number): void {
    for (const stage of this.#stages) stage.prepare(rows);
  }

  /** What has changed in the block tables beside the steps. */
  tell(tables: readonly TableChange[]): void {
    for (const stage of this.#stages) stage.tell(tables);
  }

  /**
   * Submits a step. With `samplings`, one for each output, the device chooses the tokens; with
   * `hidden`, the hidden states of its rows can be read. `started` is when the host began to work
   * on it. Older steps move on by a device.
   */
  launch(
    work: StepWork,
    samplings?: readonly OutputSampling[],
    started = performance.now(),
    hidden = false,
  ): Flight {
    const index = this.#next;
    const times = { hostMs: 0, waitMs: 0 };
    const flight: Flight = { work, samplings, hidden, index, runs: [], isNew: false, ...times };
    this.#next = (index + 1) % this.#last.flightCount;
    this.#submit(flight);
    flight.hostMs = performance.now() - started;
    for (const older of this.#underway) this.#advance(older);
    this.#underway.push(flight);
    return flight;
  }

  /** Waits for a step; older ones may land later. */
  land(flight: Flight): void {
    const position = this.#underway.indexOf(flight);
    invariant(position >= 0, "a step that lands was given up");
    // On every device it comes behind the older ones.
    for (const each of this.#underway.slice(0, position + 1)) {
      while (each.runs.length < this.#stages.length) this.#advance(each);
    }
    this.#underway.splice(position, 1);
    this.#wait(flight);
    this.#landed = flight;
    this.#lastStep = statsOf(flight);
  }

  /** The tokens that the device chose in a step that landed, until its memory is another's. */
  tokensOf({ index, work }: Flight): Uint32Array {
    return this.#last.tokensOf(index, work.outputRows.length);
  }

  /** The logits of a step that landed: [outputs, vocabularySize], valid until the next step. */
  logitsOf({ work }: Flight): Float32Array {
    return this.#last.logitsOf(work.outputRows.length);
  }

  /** Hidden states of a step that landed: [rows, width], valid until the next step. */
  hiddenOf({ work }: Flight): Float32Array {
    return this.#last.hiddenOf(work.rows.length);
  }

  get lastStep(): StepStats | undefined {
    return this.#lastStep;
  }

  /** Time of each kind of dispatch in the last step, if profiling. */
  profile(): ProfileLine[] {
    return (this.#landed?.runs ?? []).flatMap(({ pass }) => pass.profiler?.read() ?? []);
  }

  /** Gives up all steps under way. Those that a device has go on there, and nobody asks. */
  reset(): void {
    this.#underway = [];
  }

  free(): void {
    for (const stage of this.#stages) stage.free();
  }

  /** Brings a step to the next device, if there is one that it has not come to. */
  #advance(flight: Flight): void {
    const { index, runs, work } = flight;
    const [stage, next] = [this.#stages[runs.length - 1], this.#stages[runs.length]];
    if (stage === undefined || next === undefined) return;
    this.#wait(flight);
    const started = performance.now();
    stage.handOver(next, index, work.rows.length);
    this.#submit(flight);
    flight.hostMs += performance.now() - started;
  }

  #submit(flight: Flight): void {
    const { index, runs, work } = flight;
    const stage = this.#stages[runs.length];
    invariant(stage !== undefined, "a step has passed all devices");
    const run = stage.submit(index, work, flight);
    runs.push(run);
    if (run.isNew) flight.isNew = true;
  }

  /** For the device that a step has come to. */
  #wait(flight: Flight): void {
    const started = performance.now();
    const { runs } = flight;
    const run = runs.at(-1);
    invariant(run !== undefined, "a step that was not launched");
    this.#stages[runs.length - 1]?.wait(run);
    flight.waitMs += performance.now() - started;
  }
}

function statsOf({ runs, work, hostMs, waitMs }: Flight): StepStats {
  const total = (of: (run: StageRun) => number) => runs.reduce((sum, run) => sum + of(run), 0);
  return {
    rows: work.rows.length,
    outputs: work.outputRows.length,
    submits: total(({ submits }) => submits),
    dispatches: total(({ pass }) => pass.program.dispatchCount),
    barriers: total(({ pass }) => pass.program.barrierCount),
    hostMs,
    waitMs,
    get gpuMs() {
      return total(({ pass }) => pass.timer.milliseconds());
    },
  };
}
