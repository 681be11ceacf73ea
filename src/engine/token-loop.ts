/**
 * The loop that makes texts, many at once: plan a step, run it, sample, hand out the tokens. It
 * turns as long as there is something to compute, and the event loop turns between steps, so that
 * signals, requests and writes get their turn.
 */
import { invariant } from "../errors.ts";
import type { FinishReason, GenerationRequest } from "./generation.ts";
import type { RowBudget } from "./row-budget.ts";
import type { Runner, StepStats } from "./runner.ts";
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
}

export class TokenLoop {
  readonly #parts: TokenLoopParts;
  readonly #open = new Map<number, Ticket>();
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

  /** Ends all texts as cancelled. */
  stop(): void {
    for (const id of [...this.#open.keys()]) this.#cancel(id);
  }

  async #turn(): Promise<void> {
    try {
      do await nextTurn();
      while (this.#step());
    } catch (error) {
      // Who waits for tokens gets to know why there are none.
      this.#parts.scheduler.reset();
      for (const ticket of this.#open.values()) ticket.fail(error);
      this.#open.clear();
    } finally {
      this.#isTurning = false;
    }
  }

  /** False if nothing can be computed before somebody asks for more. */
  #step(): boolean {
    const started = performance.now();
    const { scheduler, runner, prefillBudget, mixedBudget } = this.#parts;
    const budget = scheduler.isDecoding ? mixedBudget : prefillBudget;
    const plan = scheduler.plan(budget.rows);
    if (plan === undefined) return false;
    this.#begin(plan);
    const logits = runner.run(plan, started);
    const progress = scheduler.complete(plan, this.#sample(plan, logits));
    for (const { id, token, finish } of progress) this.#deliver(id, token, finish);
    const { lastStep } = runner;
    if (lastStep === undefined) return true;
    budget.observe(lastStep.rows, lastStep.waitMs);
    // What was done with the logits counts, too.
    lastStep.hostMs = performance.now() - started - lastStep.waitMs;
    this.onStep?.(lastStep);
    return true;
  }

  #begin({ runs }: StepPlan): void {
    for (const { id } of runs) {
      const ticket = this.#open.get(id);
      if (ticket === undefined || ticket.hasBegun) continue;
      ticket.hasBegun = true;
      ticket.request.onBegin?.(this.#parts.scheduler.cachedTokensOf(id));
    }
  }

  /** The place of the sampler, on the host as yet: from logits to one token a text. */
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
