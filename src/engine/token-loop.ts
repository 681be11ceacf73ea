/**
 * The loop that makes texts, many at once: plan a step, run it, sample, hand out the tokens. Where
 * the device samples, the next step is under way before the host knows the tokens of the last. It
 * turns as long as there is something to compute, and the event loop turns between steps, so that
 * signals, requests and writes get their turn.
 */
import { invariant } from "../errors.ts";
import type { FinishReason, GenerationRequest } from "./generation.ts";
import type { RowBudget } from "./row-budget.ts";
import { biasesMax, greedySampling, type OutputSampling } from "../kernels/sample.ts";
import type { DeviceSampling } from "./sampler.ts";
import type { Flight, Runner, StepStats } from "./runner.ts";
import type { Outcome, Scheduler } from "./scheduler.ts";
import type { StepPlan } from "./step-plan.ts";
import { Ticket } from "./ticket.ts";
import { nextTurn } from "./turn.ts";

export interface TokenLoopParts {
  readonly scheduler: Scheduler;
  readonly runner: Runner;
  /** Of steps that only prefill. */
  readonly prefillBudget: RowBudget;
  /** Of steps in which others wait for their next token. */
  readonly mixedBudget: RowBudget;
  readonly vocabularySize: number;
  /** No plan has rows whose tokens are not known. */
  readonly waitsForIds?: boolean;
}

/** A step under way, and what it was planned for. */
interface LoopFlight {
  readonly plan: StepPlan;
  readonly flight: Flight;
  readonly budget: RowBudget;
  /** The device chooses its tokens; else the host must, before anything follows. */
  readonly samples: boolean;
}

const givenUp: DeviceSampling = { biasCount: 0, next: () => greedySampling };

export class TokenLoop {
  readonly #parts: TokenLoopParts;
  readonly #open = new Map<number, Ticket>();
  /** Oldest first. */
  #flights: LoopFlight[] = [];
  #isTurning = false;
  onStep: ((stats: StepStats) => void) | undefined;

  constructor(parts: TokenLoopParts) {
    this.#parts = parts;
  }

  /** Yields the tokens behind the prompt as they are made and returns why the text ended. */
  async *generate(request: GenerationRequest): AsyncGenerator<number, FinishReason> {
    const { prompt, maxTokens, sampler, signal, client, boundaries, lockstep = false } = request;
    const { scheduler } = this.#parts;
    if (maxTokens === 0) return "length";
    if (signal?.aborted === true) return "cancelled";
    sampler.prime(prompt);
    const id = scheduler.submit({ prompt, maxTokens, client, boundaries });
    const ticket = new Ticket(request);
    this.#open.set(id, ticket);
    const cancel = () => this.#cancel(id);
    signal?.addEventListener("abort", cancel);
    this.wake();
    try {
      for (;;) {
        const next = await ticket.next();
        if (typeof next !== "number") return next;
        yield next;
        if (!lockstep) continue;
        scheduler.setHeld(id, false);
        this.wake();
      }
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#cancel(id);
    }
  }

  /** Goes on if it stands still and there may be something to compute again. */
  wake(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    void this.#turn();
  }

  /** Ends all texts as cancelled. Steps under way never land: what they write is about to go. */
  stop(): void {
    for (const id of [...this.#open.keys()]) this.#cancel(id);
    this.#flights = [];
  }

  /** Lands what is under way: another step may take the memory of its logits. */
  settle(): void {
    try {
      for (let flight = this.#flights.shift(); flight; flight = this.#flights.shift()) {
        this.#land(flight);
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  async #turn(): Promise<void> {
    try {
      do await nextTurn();
      while (this.#step());
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isTurning = false;
    }
  }

  /** Who waits for tokens gets to know why there are none. */
  #fail(error: unknown): void {
    this.#parts.scheduler.reset();
    this.#parts.runner.reset();
    this.#flights = [];
    for (const ticket of this.#open.values()) ticket.fail(error);
    this.#open.clear();
  }

  /** False if nothing can be computed before somebody asks for more. */
  #step(): boolean {
    while (this.#canFollow() && this.#launch());
    const flight = this.#flights.shift();
    if (flight === undefined) return false;
    this.#land(flight);
    return true;
  }

  /** Whether what the next step reads will be on the device when its turn comes. */
  #canFollow(): boolean {
    if (this.#parts.waitsForIds === true) return true;
    return this.#flights.every(({ plan, samples }) => samples || plan.outputRows.length === 0);
  }

  #launch(): boolean {
    const started = performance.now();
    const { scheduler, runner, prefillBudget, mixedBudget } = this.#parts;
    const budget = scheduler.isDecoding ? mixedBudget : prefillBudget;
    const plan = scheduler.plan(budget.rows);
    if (plan === undefined) return false;
    this.#begin(plan);
    const samplings = this.#samplingsOf(plan);
    const flight = runner.launch(plan, samplings, started);
    this.#flights.push({ plan, flight, budget, samples: samplings !== undefined });
    return true;
  }

  #land({ plan, flight, budget, samples }: LoopFlight): void {
    const { scheduler, runner } = this.#parts;
    runner.land(flight);
    const { lastStep } = runner;
    invariant(lastStep !== undefined, "a step that landed");
    const started = performance.now();
    const outcomes = samples
      ? this.#outcomes(plan, runner.tokensOf(flight))
      : this.#sample(plan, runner.logitsOf(flight));
    const progress = scheduler.complete(plan, outcomes);
    for (const { id, token, finish } of progress) this.#deliver(id, token, finish);
    // How long it was waited for says little when another step was before it.
    if (budget.isFull(lastStep.rows)) budget.observe(lastStep.rows, lastStep.gpuMs);
    // What was done with the results counts, too.
    lastStep.hostMs += performance.now() - started;
    this.onStep?.(lastStep);
  }

  /** How the device is to choose the token of each output; undefined if the host has to. */
  #samplingsOf({ runs, outputRows }: StepPlan): OutputSampling[] | undefined {
    if (outputRows.length === 0 || !this.#parts.runner.canSample) return undefined;
    const samplings: DeviceSampling[] = [];
    for (const { id, hasOutput } of runs) {
      if (!hasOutput) continue;
      const request = this.#open.get(id)?.request;
      // It may have been given up since the plan was made; then nobody minds what is chosen.
      const sampling = request === undefined ? givenUp : request.sampler.onDevice;
      if (sampling === undefined || request?.lockstep === true) return undefined;
      samplings.push(sampling);
    }
    const biasCount = samplings.reduce((sum, { biasCount: count }) => sum + count, 0);
    return biasCount > biasesMax ? undefined : samplings.map((sampling) => sampling.next());
  }

  #outcomes({ runs }: StepPlan, tokens: Uint32Array): Outcome[] {
    const { vocabularySize } = this.#parts;
    const ids = runs.flatMap(({ id, hasOutput }) => (hasOutput ? [id] : []));
    return ids.map((id, i) => {
      const token = tokens[i] ?? vocabularySize;
      invariant(token < vocabularySize, `the device chose token ${token} of ${vocabularySize}`);
      return { token, isEnd: this.#open.get(id)?.request.endTokens.has(token) ?? true };
    });
  }

  #begin({ runs }: StepPlan): void {
    for (const { id } of runs) {
      const ticket = this.#open.get(id);
      if (ticket === undefined || ticket.hasBegun) continue;
      ticket.hasBegun = true;
      ticket.request.onBegin?.(this.#parts.scheduler.cachedTokensOf(id));
    }
  }

  /** What the device cannot choose, the host does: from logits to one token a text. */
  #sample({ runs, outputRows }: StepPlan, logits: Float32Array): Outcome[] {
    const { vocabularySize } = this.#parts;
    const outcomes: Outcome[] = [];
    for (const { id, hasOutput } of runs) {
      if (!hasOutput) continue;
      const start = outcomes.length * vocabularySize;
      outcomes.push(this.#choose(id, logits.subarray(start, start + vocabularySize)));
    }
    invariant(outcomes.length === outputRows.length, "an output without a text");
    return outcomes;
  }

  /** A sampler that fails ends its own text; that may have been given up since it was planned. */
  #choose(id: number, logits: Float32Array): Outcome {
    const ticket = this.#open.get(id);
    if (ticket === undefined) return { token: 0, isEnd: true };
    const { sampler, endTokens } = ticket.request;
    try {
      const token = sampler.sample(logits);
      return { token, isEnd: endTokens.has(token) };
    } catch (error) {
      this.#cancel(id);
      ticket.fail(error);
      return { token: 0, isEnd: true };
    }
  }

  #deliver(id: number, token: number, finish: "stop" | "length" | undefined): void {
    const ticket = this.#open.get(id);
    invariant(ticket !== undefined, `text ${id} is not open`);
    const { lockstep, onPrefill } = ticket.request;
    if (!ticket.isPrefilled) onPrefill?.();
    ticket.isPrefilled = true;
    if (finish !== "stop") ticket.push(token);
    if (finish !== undefined) {
      ticket.finish(finish);
      this.#open.delete(id);
    } else if (lockstep === true) this.#parts.scheduler.setHeld(id, true);
  }

  #cancel(id: number): void {
    const ticket = this.#open.get(id);
    if (ticket === undefined) return;
    this.#open.delete(id);
    this.#parts.scheduler.cancel(id);
    ticket.cancel();
  }
}
