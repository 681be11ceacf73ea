/**
 * Which rows of which texts the next step computes. It mixes decoding and prefill under a budget of
 * rows; texts join and leave at any step. Numbers in, numbers out: it knows no device and no clock.
 *
 * A plan may be made before the ids of the step before are known (`pipelined`): a row then takes
 * the latest token of its slot, and a text that turns out to have ended leaves a row to discard.
 * A text may bring guesses of what follows: rows that are taken back if they turn out to be wrong.
 */
import { invariant } from "../errors.ts";
import { blockTokens } from "../kernels/step.ts";
import { ceilDiv } from "../math.ts";
import { ClientLedger } from "./client-ledger.ts";
import { addDrafts, settleDrafts } from "./draft-rows.ts";
import { FairOrder } from "./fair-order.ts";
import { LooseSequences } from "./loose-sequences.ts";
import { PagedCache, type CacheLimits, type TableChange } from "./paged-cache.ts";
import type { Residence } from "./residence.ts";
import { noTotals, type SchedulerStats } from "./scheduler-stats.ts";
import { isBeingComputed } from "./shared-work.ts";
import type { Outcome, Progress } from "./step-outcome.ts";
import { assembleStep, hasOutput, type Share, type StepPlan } from "./step-plan.ts";
import { decodingShare, TokenStream, type TokenRequest } from "./token-stream.ts";

export interface SchedulerLimits extends CacheLimits {
  /** Positions of a sequence at most. */
  readonly contextTokens: number;
  /** Rows of a step whose logits can be had. */
  readonly outputCapacity: number;
  /** Plan one step ahead of the ids. */
  readonly pipelined: boolean;
  /** At most; two if pipelined and else one by default. */
  readonly stepsInFlight?: number;
  /** Tokens from one checkpoint of recurrent state to the next. */
  readonly checkpointInterval?: number | undefined;
}

/** A step whose ids are not known yet. */
interface Flight {
  readonly plan: StepPlan;
  readonly shares: readonly Share[];
  readonly outputs: readonly Share[];
}

/** Rows of prefill that are given out at a time. */
const quantumRows = blockTokens;

export class Scheduler {
  readonly loose: LooseSequences;
  readonly #limits: SchedulerLimits;
  readonly #cache: PagedCache;
  readonly #ledger = new ClientLedger();
  readonly #order = new FairOrder(this.#ledger);
  readonly #waiting = new Map<number, TokenStream>();
  readonly #running = new Map<number, TokenStream>();
  /** Taken from the end. */
  readonly #freeSlots: number[];
  readonly #flights: Flight[] = [];
  readonly #totals = noTotals();
  readonly #stepsInFlight: number;
  #nextId = 0;
  /** Of the step that is being planned. */
  readonly #shares = new Map<TokenStream, Share>();
  #rowsLeft = 0;

  constructor(limits: SchedulerLimits) {
    const { blockCount, sequenceCapacity, contextTokens, outputCapacity } = limits;
    invariant(
      ceilDiv(contextTokens, blockTokens) <= blockCount,
      `${contextTokens} tokens do not fit ${blockCount} blocks`,
    );
    invariant(sequenceCapacity <= outputCapacity, `${outputCapacity} outputs`);
    const interval = limits.checkpointInterval ?? blockTokens;
    invariant(interval % blockTokens === 0, `checkpoints every ${interval} tokens`);
    this.#limits = limits;
    this.#stepsInFlight = limits.stepsInFlight ?? (limits.pipelined ? 2 : 1);
    this.#cache = new PagedCache(limits);
    this.#freeSlots = Array.from({ length: sequenceCapacity }, (_, i) => sequenceCapacity - 1 - i);
    this.loose = new LooseSequences(this.#cache, this.#freeSlots);
  }

  get stats(): SchedulerStats {
    return {
      waitingCount: this.#waiting.size,
      runningCount: this.#running.size,
      freeBlockCount: this.#cache.freeCount,
      idleBlockCount: this.#cache.idleCount,
      totals: { ...this.#totals },
    };
  }

  /** Asks for a text; returns the number that it goes by. */
  submit(request: TokenRequest): number {
    const { contextTokens, checkpointCapacity = 0, checkpointInterval } = this.#limits;
    const { prompt, maxTokens } = request;
    invariant(prompt.length > 0 && prompt.length <= contextTokens, `a prompt of ${prompt.length}`);
    invariant(maxTokens > 0, "no tokens are asked for");
    const interval = checkpointCapacity > 0 ? checkpointInterval : undefined;
    const stream = new TokenStream(this.#nextId++, request, interval ?? Number.POSITIVE_INFINITY);
    this.#waiting.set(stream.id, stream);
    this.#ledger.open(stream.client);
    return stream.id;
  }

  /** Ends a text wherever it is; no later plan has rows of it. False if it has ended already. */
  cancel(id: number): boolean {
    const stream = this.#waiting.get(id) ?? this.#running.get(id);
    if (stream !== undefined) this.#end(stream);
    return stream !== undefined;
  }

  /** While a text is held, no plan has rows of it. */
  setHeld(id: number, isHeld: boolean): void {
    const stream = this.#waiting.get(id) ?? this.#running.get(id);
    if (stream !== undefined) stream.isHeld = isHeld;
  }

  /** Some running text makes a token with every step. */
  get isDecoding(): boolean {
    for (const stream of this.#running.values()) if (stream.isDecoding) return true;
    return false;
  }

  /** Texts that make a token with every step, if no running text does anything else. */
  get decodingCount(): number | undefined {
    for (const stream of this.#running.values()) if (!stream.isDecoding) return undefined;
    return this.#running.size;
  }

  /** All tokens of a text that are known; undefined unless it is running. */
  tokensOf(id: number): readonly number[] | undefined {
    return this.#running.get(id)?.tokens;
  }

  /** Guesses what follows the tokens of a text; the next step verifies what it has room for. */
  propose(id: number, drafts: readonly number[]): void {
    const stream = this.#running.get(id);
    if (stream?.pendingCount === 0) stream.drafts = drafts;
  }

  /** Makes room for the first `length` positions of a text; undefined if there is none. */
  reserve(id: number, length: number): readonly TableChange[] | undefined {
    const residence = this.#running.get(id)?.residence;
    return residence && this.#cache.reserve(residence, length);
  }

  /** Tokens of a prompt that the cache held. */
  cachedTokensOf(id: number): number {
    return (this.#running.get(id) ?? this.#waiting.get(id))?.cachedTokens ?? 0;
  }

  /**
   * The next step, of at most `rowBudget` rows, or undefined if nothing can be computed before an
   * earlier step is complete.
   */
  plan(rowBudget: number): StepPlan | undefined {
    if (rowBudget < this.#limits.sequenceCapacity) invariant(false, `${rowBudget} rows`);
    if (this.#flights.length >= this.#stepsInFlight) return undefined;
    for (;;) {
      this.#shares.clear();
      this.#rowsLeft = rowBudget;
      this.#shareRows();
      if (this.#shares.size > 0) return this.#launch([...this.#shares.values()]);
      if (this.#flights.length > 0 || this.#running.size === 0) return undefined;
      if ([...this.#running.values()].every(({ isHeld }) => isHeld)) return undefined;
      // Prompts hold all of the cache, and none of them can go on.
      this.#preempt(this.#youngest());
    }
  }

  /** Takes in what the earliest step under way has made: of each run with outputs, in order. */
  complete(plan: StepPlan, outcomes: readonly Outcome[]): Progress[] {
    const flight = this.#flights.shift();
    invariant(flight?.plan === plan, "steps are completed in the order of their plans");
    invariant(outcomes.length === flight.outputs.length, "an outcome of each output");
    return outcomes.flatMap((outcome, i) => {
      const share = flight.outputs[i];
      invariant(share !== undefined, "an outcome of nothing");
      return this.#settle(share, outcome);
    });
  }

  /** Gives up all texts and prefixes: behind a step that failed, nobody knows what is computed. */
  reset(): void {
    for (const stream of [...this.#waiting.values(), ...this.#running.values()]) this.#end(stream);
    this.#flights.length = 0;
    this.#cache.takeCopies();
    this.#cache.clear();
  }

  /** Forgets all prefixes that no running text uses. */
  clearPrefixes(): void {
    this.#cache.clear();
  }

  /** Counts all that is held again. */
  check(): void {
    const running = [...this.#running.values()].flatMap(({ residence }) => residence ?? []);
    const residences = [...running, ...this.loose.all()];
    this.#cache.check(residences);
    const slots = new Set([...this.#freeSlots, ...residences.map(({ slot }) => slot)]);
    invariant(slots.size === this.#limits.sequenceCapacity, "a sequence slot is lost");
    invariant(running.length === this.#running.size, "a running text holds nothing");
  }

  /** Decoding comes first, so that its pace does not depend on prompts. */
  #shareRows(): void {
    // Who waits for ids leaves the other steps under way a part of the texts.
    const stepCount = this.#limits.pipelined ? 1 : this.#stepsInFlight;
    let left = decodingShare(this.#running.values(), stepCount);
    for (const stream of this.#runningByAge()) {
      if (stream.isDecoding && this.#canStep(stream) && left-- > 0) this.#decode(stream);
    }
    this.#admit();
    this.#prefill();
    addDrafts([...this.#shares.values()], this.#cache, this.#limits, this.#rowsLeft);
  }

  #canStep(stream: TokenStream): boolean {
    const { isHeld, verifyingCount, pendingCount, madeCount, maxTokens, length } = stream;
    if (isHeld || verifyingCount > 0) return false;
    if (pendingCount > 0 && !this.#limits.pipelined) return false;
    return madeCount < maxTokens && length <= this.#limits.contextTokens;
  }

  #runningByAge(): Iterable<TokenStream> {
    if (this.#running.size < 2) return this.#running.values();
    return [...this.#running.values()].toSorted((a, b) => a.id - b.id);
  }

  #decode(stream: TokenStream): void {
    const count = Math.min(stream.dueCount, this.#rowsLeft);
    if (count === 0) return;
    for (let { residence } = stream; residence !== undefined; { residence } = stream) {
      if (this.#cache.grow(residence, count) === count) {
        this.#give(stream, residence, count);
        stream.isReplaying = stream.dueCount > 0;
        return;
      }
      // Older ones have their rows already and are not touched.
      this.#preempt(this.#youngest());
    }
  }

  /** Lets texts in while there are slots and all of their tokens fit. */
  #admit(): void {
    if (this.#waiting.size === 0) return;
    for (let slot = this.#freeSlots.at(-1); slot !== undefined; slot = this.#freeSlots.at(-1)) {
      const ready = [...this.#waiting.values()].filter((stream) => stream.isReady);
      const stream = this.#order.nextWaiting(ready, this.#running.values());
      if (stream === undefined) return;
      const { tokens, reuses } = stream;
      stream.residence = this.#cache.enter(slot, tokens, this.#reservedBlocks(), reuses);
      if (stream.residence === undefined) return;
      this.#order.countAdmission();
      this.#freeSlots.pop();
      this.#waiting.delete(stream.id);
      this.#running.set(stream.id, stream);
    }
  }

  /** What those inside will need before their next token, and one block more for each. */
  #reservedBlocks(): number {
    let count = 0;
    for (const { residence, length } of this.#running.values()) {
      const missing = ceilDiv(length, blockTokens) - (residence?.blocks.length ?? 0);
      count += Math.max(missing, 0) + 1;
    }
    return count;
  }

  #prefill(): void {
    const open = new Set<TokenStream>();
    for (const stream of this.#running.values()) {
      const { dueCount, isDecoding } = stream;
      if (dueCount > 0 && !isDecoding && this.#canStep(stream)) open.add(stream);
    }
    while (this.#rowsLeft > 0 && open.size > 0) {
      const stream = this.#order.nextPrefill(open);
      if (stream === undefined) return;
      if (!this.#prefillQuantum(stream)) open.delete(stream);
    }
  }

  /** Whether there may be more rows for the stream in this step. */
  #prefillQuantum(stream: TokenStream): boolean {
    const { residence } = stream;
    invariant(residence !== undefined, "prefill of a text that is not inside");
    if (!residence.hasBegun && !this.#begin(stream, residence)) return false;
    const room = stream.checkpointAfter(residence.length) - residence.length;
    const wanted = Math.min(quantumRows, this.#rowsLeft, stream.dueCount, room);
    const count = this.#cache.grow(residence, wanted);
    if (count === 0) return false;
    this.#give(stream, residence, count);
    return count < room && stream.dueCount > 0;
  }

  #begin(stream: TokenStream, residence: Residence): boolean {
    this.#cache.refresh(residence, stream.tokens);
    if (this.#cache.availableCount === 0) return false;
    if (isBeingComputed(this.#shares.values(), stream, residence)) return false;
    this.#cache.begin(residence, stream.tokens);
    if (stream.chargedLength === 0) {
      stream.cachedTokens = residence.length;
      this.#totals.cached += residence.length;
    }
    stream.chargedLength = Math.max(stream.chargedLength, residence.length);
    return true;
  }

  #give(stream: TokenStream, residence: Residence, count: number): void {
    const share = this.#shares.get(stream);
    const { length: position } = residence;
    if (share !== undefined) share.rowCount += count;
    else {
      const isFirst = !residence.hasRows;
      const more = { isFirst, rowCount: count, drafts: [] };
      this.#shares.set(stream, { stream, residence, position, ...more });
      residence.hasRows = true;
    }
    this.#cache.advance(residence, count);
    this.#rowsLeft -= count;
    const charge = residence.length - stream.chargedLength;
    if (charge <= 0) return;
    this.#ledger.charge(stream.client, charge);
    stream.chargedLength = residence.length;
  }

  #launch(shares: readonly Share[]): StepPlan {
    const tables = shares.flatMap(({ residence }) => this.#cache.takeTableChange(residence) ?? []);
    const plan = assembleStep(shares, this.#cache.takeCopies(), tables);
    const outputs = shares.filter(hasOutput);
    for (const { stream } of outputs) stream.pendingCount++;
    for (const { stream, residence } of shares) {
      const { length } = residence;
      if (stream.checkpointAfter(length - 1) === length) this.#cache.checkpoint(residence);
      this.#cache.publish(residence, stream.tokens);
    }
    this.#flights.push({ plan, shares, outputs });
    this.#totals.rows += plan.rows.length;
    return plan;
  }

  #settle(share: Share, { tokens, isEnd }: Outcome): Progress[] {
    const { stream, residence } = share;
    if (stream.isOver) {
      this.#totals.discarded++;
      return [];
    }
    stream.pendingCount--;
    stream.tokens.push(...tokens);
    const rightCount = settleDrafts(share, tokens, this.#cache);
    this.#totals.drafted += share.drafts.length;
    this.#totals.accepted += rightCount;
    const isFull =
      stream.madeCount >= stream.maxTokens || stream.length > this.#limits.contextTokens;
    const atLimit = isFull && stream.pendingCount === 0 ? "length" : undefined;
    const finish = isEnd ? "stop" : atLimit;
    if (finish !== undefined) this.#end(stream);
    else if (stream.residence === residence) this.#cache.publish(residence, stream.tokens);
    return [{ id: stream.id, tokens, finish }];
  }

  #youngest(): TokenStream {
    const youngest = [...this.#running.values()].toSorted((a, b) => b.id - a.id)[0];
    invariant(youngest !== undefined, "nothing is running");
    return youngest;
  }

  /** Takes all from a text; it will compute its tokens again, or find them in the tree. */
  #preempt(stream: TokenStream): void {
    this.#leave(stream);
    this.#waiting.set(stream.id, stream);
    this.#totals.preemptions++;
  }

  #end(stream: TokenStream): void {
    stream.isOver = true;
    this.#leave(stream);
    this.#waiting.delete(stream.id);
    this.#ledger.close(stream.client);
  }

  #leave(stream: TokenStream): void {
    const { residence } = stream;
    if (residence === undefined) return;
    this.#cache.leave(residence, stream.tokens);
    stream.residence = undefined;
    stream.isReplaying = false;
    this.#running.delete(stream.id);
    this.#freeSlots.push(residence.slot);
  }
}
