/**
 * The loop that makes texts, many at once: plan a step, run it, sample, hand out the tokens. Where
 * the device samples, the next step is under way before the host knows the tokens of the last. It
 * turns as long as there is something to compute, and the event loop turns between steps, so that
 * signals, requests and writes get their turn.
 */
import { invariant } from "../errors.ts";
import { draftedRowsMax } from "./draft-rows.ts";
import type { Drafter } from "./drafter.ts";
import type { FinishReason, GenerationRequest } from "./generation.ts";
import { PredictedTokens, type Lookahead } from "./lookahead.ts";
import type { RowBudget } from "./row-budget.ts";
import { biasesMax, greedySampling, type OutputSampling } from "../kernels/sample.ts";
import type { DeviceSampling } from "./sampler.ts";
import type { Flight, Runner, StepStats } from "./runner.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Speculation } from "./speculation.ts";
import type { Outcome, Progress } from "./step-outcome.ts";
import type { Run, StepPlan } from "./step-plan.ts";
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
  readonly speculation: Speculation;
  /** Follows the steps, if the model guesses by layers of its own. */
  readonly lookahead?: Lookahead | undefined;
  /** Of a text that brings none of its own. */
  readonly createDrafter: () => Drafter | undefined;
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
  /** Somebody reads the hidden states of its rows. */
  readonly hidden: boolean;
  /** It could have been under way earlier, but for drafts. */
  readonly isDelayed: boolean;
}

const givenUp: DeviceSampling = { biasCount: 0, next: () => greedySampling, takeBack: () => {} };

export class TokenLoop {
  readonly #parts: TokenLoopParts;
  readonly #open = new Map<number, Ticket>();
  /** Oldest first. */
  #flights: LoopFlight[] = [];
  #isTurning = false;
  /** The next step waits, or waited, for drafts to be made or verified. */
  #isDelayed = false;
  /** When the last step landed, if nothing but steps was done since. */
  #landedAt: number | undefined;
  onStep: ((stats: StepStats) => void) | undefined;

  constructor(parts: TokenLoopParts) {
    this.#parts = parts;
  }

  /** Yields the tokens behind the prompt as they are made and returns why the text ended. */
  async *generate(request: GenerationRequest): AsyncGenerator<number, FinishReason> {
    const { prompt, maxTokens, sampler, signal, lockstep = false } = request;
    const { client, boundaries, reuses } = request;
    const { scheduler } = this.#parts;
    if (maxTokens === 0) return "length";
    if (signal?.aborted === true) return "cancelled";
    sampler.prime(prompt);
    const id = scheduler.submit({ prompt, maxTokens, client, boundaries, reuses });
    const ticket = new Ticket(request);
    this.#open.set(id, ticket);
    const drafter = this.#drafterOf(request);
    if (drafter !== undefined) this.#parts.speculation.open(id, drafter);
    if (drafter instanceof PredictedTokens) this.#parts.lookahead?.open(id, drafter);
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
    this.#landedAt = undefined;
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
    for (const [id, ticket] of this.#open) {
      ticket.fail(error);
      this.#close(id);
    }
  }

  /** False if nothing can be computed before somebody asks for more. */
  #step(): boolean {
    while (this.#canFollow() && this.#launch());
    const flight = this.#flights.shift();
    if (flight !== undefined) this.#land(flight);
    else [this.#landedAt, this.#isDelayed] = [undefined, false];
    return flight !== undefined;
  }

  /** Whether what the next step reads will be on the device when its turn comes, and drafts too. */
  #canFollow(): boolean {
    // Then several steps share the texts, and none has to wait for another.
    if (this.#parts.waitsForIds === true) return true;
    const isReady = this.#flights.every(
      ({ plan, samples, hidden }) =>
        !hidden && ((samples && !hasDrafts(plan)) || plan.outputRows.length === 0),
    );
    if (!isReady || this.#flights.length === 0) return isReady;
    const { scheduler, speculation, lookahead } = this.#parts;
    this.#isDelayed =
      lookahead?.isAwaited === true ||
      speculation.isWorthWaiting(scheduler.decodingCount, this.#tokensOf);
    return !this.#isDelayed;
  }

  readonly #tokensOf = (id: number) => this.#parts.scheduler.tokensOf(id);

  /** Where the host chooses, it takes longer for each token than a step does. */
  #drafterOf({ drafter, sampler, lockstep }: GenerationRequest): Drafter | undefined {
    const canDraft = sampler.onDevice !== undefined && lockstep !== true;
    if (!canDraft) return undefined;
    return drafter === undefined ? this.#parts.createDrafter() : (drafter ?? undefined);
  }

  #launch(): boolean {
    const started = performance.now();
    const { scheduler, runner, prefillBudget, mixedBudget, speculation } = this.#parts;
    if (this.#flights.length === 0) {
      const drafts = speculation.drafts(scheduler.decodingCount, this.#tokensOf);
      for (const [id, tokens] of drafts) scheduler.propose(id, tokens);
    }
    const budget = scheduler.isDecoding ? mixedBudget : prefillBudget;
    const plan = scheduler.plan(budget.rows);
    if (plan === undefined) return false;
    this.#begin(plan);
    const samplings = this.#samplingsOf(plan);
    const hidden = plan.runs.some(({ id }) => this.#open.get(id)?.request.onHidden !== undefined);
    const flight = runner.launch(plan, samplings, started, hidden);
    const isDelayed = this.#isDelayed;
    this.#isDelayed = false;
    // Recording takes longer than steps do.
    if (flight.isNew) this.#landedAt = undefined;
    const samples = samplings !== undefined;
    this.#flights.push({ plan, flight, budget, samples, hidden, isDelayed });
    return true;
  }

  #land(landed: LoopFlight): void {
    const { plan, flight, budget, samples, hidden } = landed;
    const { scheduler, runner } = this.#parts;
    runner.land(flight);
    const { lastStep } = runner;
    invariant(lastStep !== undefined, "a step that landed");
    const started = performance.now();
    if (hidden) this.#showHidden(plan, runner.hiddenOf(flight));
    const outcomes = samples
      ? this.#outcomes(plan, runner.tokensOf(flight))
      : this.#sample(plan, runner.logitsOf(flight));
    this.#learn(landed, outcomes, started);
    const progress = scheduler.complete(plan, outcomes);
    for (const made of progress) this.#deliver(made);
    const isUsual = this.#parts.lookahead?.follow(plan, flight.index, outcomes) ?? true;
    if (!isUsual) this.#landedAt = undefined;
    // How long it was waited for says little when another step was before it.
    if (budget.isFull(lastStep.rows)) budget.observe(lastStep.rows, lastStep.gpuMs);
    // What was done with the results counts, too.
    lastStep.hostMs += performance.now() - started;
    this.onStep?.(lastStep);
  }

  /** How the device is to choose the token of each output; undefined if the host has to. */
  #samplingsOf({ runs, outputRows }: StepPlan): OutputSampling[] | undefined {
    if (outputRows.length === 0) return undefined;
    const samplings: DeviceSampling[] = [];
    for (const { id, drafts } of outputsOf(runs)) {
      const request = this.#open.get(id)?.request;
      // It may have been given up since the plan was made; then nobody minds what is chosen.
      const sampling = request === undefined ? givenUp : request.sampler.onDevice;
      if (sampling === undefined || request?.lockstep === true) return undefined;
      for (let i = 0; i <= drafts.length; i++) samplings.push(sampling);
    }
    const biasCount = samplings.reduce((sum, { biasCount: count }) => sum + count, 0);
    return biasCount > biasesMax ? undefined : samplings.map((sampling) => sampling.next());
  }

  #showHidden({ runs, rows }: StepPlan, hidden: Float32Array): void {
    const width = hidden.length / rows.length;
    for (const { id, position, firstRow, rowCount } of runs) {
      const shown = hidden.subarray(firstRow * width, (firstRow + rowCount) * width);
      this.#open.get(id)?.request.onHidden?.(position, shown);
    }
  }

  #outcomes({ runs }: StepPlan, chosen: Uint32Array): Outcome[] {
    const { vocabularySize } = this.#parts;
    let next = 0;
    return outputsOf(runs).map((run) => {
      const first = next;
      next += run.drafts.length + 1;
      const outcome = this.#accept(run, (i) => {
        const token = chosen[first + i] ?? vocabularySize;
        invariant(token < vocabularySize, `the device chose token ${token} of ${vocabularySize}`);
        return token;
      });
      const unused = run.drafts.length + 1 - outcome.tokens.length;
      this.#open.get(run.id)?.request.sampler.onDevice?.takeBack(unused);
      return outcome;
    });
  }

  /** What is chosen behind a draft counts as long as the drafts are what was chosen. */
  #accept({ id, drafts }: Run, choose: (output: number) => number): Outcome {
    const ticket = this.#open.get(id);
    if (ticket === undefined) return { tokens: [0], isEnd: true };
    const tokens: number[] = [];
    for (;;) {
      const token = choose(tokens.length);
      const isRight = token === drafts[tokens.length];
      tokens.push(token);
      const isEnd = ticket.request.endTokens.has(token);
      if (isEnd || !isRight) return { tokens, isEnd };
    }
  }

  /** How good the guesses are, and what the step cost. */
  #learn({ plan, flight, isDelayed }: LoopFlight, outcomes: Outcome[], now: number): void {
    const { scheduler, speculation } = this.#parts;
    const { rows, runs } = plan;
    const outputs = outputsOf(runs);
    outcomes.forEach(({ tokens }, i) => {
      const { id = -1, drafts = [] } = outputs[i] ?? {};
      speculation.hear(id, scheduler.tokensOf(id)?.length ?? 0, tokens);
      const { onDrafts } = this.#open.get(id)?.request ?? {};
      if (drafts.length > 0) onDrafts?.(drafts.length, tokens.length - 1);
    });
    // Steps on several devices at once say little of one alone.
    if (this.#parts.waitsForIds === true && this.#flights.length > 0) {
      this.#landedAt = undefined;
      return;
    }
    const drafted = hasDrafts(plan);
    // Behind a draft that was wrong, a few rows may have to be computed again.
    const isAgain = isDelayed && rows.length <= 2 * draftedRowsMax;
    const isDecoding = rows.length === runs.length || drafted || isAgain;
    const before = this.#landedAt;
    this.#landedAt = now;
    if (drafted) this.#isDelayed = true;
    if (before === undefined || flight.isNew || !isDecoding || outputs.length < runs.length) return;
    speculation.observe({
      texts: runs.length,
      rows: rows.length,
      tokens: outcomes.reduce((sum, { tokens }) => sum + tokens.length, 0),
      milliseconds: now - before,
      isPlain: !drafted && !isDelayed,
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
    let first = 0;
    for (const run of outputsOf(runs)) {
      outcomes.push(this.#choose(run, (i) => logitsAt(logits, first + i, vocabularySize)));
      first += run.drafts.length + 1;
    }
    invariant(first === outputRows.length, "an output without a text");
    return outcomes;
  }

  /** A sampler that fails ends its own text; that may have been given up since it was planned. */
  #choose(run: Run, logitsOf: (output: number) => Float32Array): Outcome {
    const ticket = this.#open.get(run.id);
    try {
      return this.#accept(run, (i) => ticket?.request.sampler.sample(logitsOf(i)) ?? 0);
    } catch (error) {
      this.#cancel(run.id);
      ticket?.fail(error);
      return { tokens: [0], isEnd: true };
    }
  }

  #deliver({ id, tokens, finish }: Progress): void {
    const ticket = this.#open.get(id);
    invariant(ticket !== undefined, `text ${id} is not open`);
    const { lockstep, onPrefill } = ticket.request;
    if (!ticket.isPrefilled) onPrefill?.();
    ticket.isPrefilled = true;
    for (const token of finish === "stop" ? tokens.slice(0, -1) : tokens) ticket.push(token);
    if (finish !== undefined) {
      ticket.finish(finish);
      this.#close(id);
    } else if (lockstep === true) this.#parts.scheduler.setHeld(id, true);
  }

  #cancel(id: number): void {
    const ticket = this.#open.get(id);
    if (ticket === undefined) return;
    this.#close(id);
    this.#parts.scheduler.cancel(id);
    ticket.cancel();
  }

  #close(id: number): void {
    this.#open.delete(id);
    this.#parts.speculation.close(id);
    this.#parts.lookahead?.close(id);
  }
}

function hasDrafts({ runs }: StepPlan): boolean {
  return runs.some(({ drafts }) => drafts.length > 0);
}

function outputsOf(runs: readonly Run[]): readonly Run[] {
  return runs.filter(({ hasOutput }) => hasOutput);
}

function logitsAt(logits: Float32Array, index: number, vocabularySize: number): Float32Array {
  return logits.subarray(index * vocabularySize, (index + 1) * vocabularySize);
}
