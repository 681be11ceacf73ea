/**
 * The HTTP thread's side of the engine: sends it work, hands on what comes back, starts it anew
 * when it dies or another model is wanted, and says what state it is in.
 */
import { UserError } from "../errors.ts";
import {
  ApiError,
  cannotLoad,
  fromProblem,
  notReady,
  overloaded,
  shuttingDown,
} from "./api-error.ts";
import { EngineLink, type Connect, type Heard } from "./engine-link.ts";
import { Job } from "./job.ts";
import type {
  Calamity,
  EmbeddingWork,
  ModelFacts,
  ModelOptions,
  Problem,
  Question,
  Reply,
  Work,
} from "./protocol.ts";
import { Questions } from "./questions.ts";
import type { OfferedModel } from "./shelf.ts";
import { TurnQueue, type Turn } from "./turn-queue.ts";

/** "unloaded": the next request loads a model. */
export type EngineState = "loading" | "ready" | "unloaded" | "draining" | "device_lost";

export interface HostOptions {
  /** How the first model is loaded. */
  readonly model: ModelOptions;
  readonly main: OfferedModel;
  /** The model is unloaded when nobody has asked for anything for so long; never by default. */
  readonly idleMs?: number | undefined;
  /** Texts that may wait for their turn; more are refused. */
  readonly queueMax: number;
  readonly connect: Connect;
  readonly onWarning: (message: string) => void;
  /** A model was loaded, and it is not the first. */
  readonly onLoaded?: (facts: ModelFacts) => void;
  /** The engine died; it is started anew unless this says not to. */
  readonly onLost: (message: string) => boolean;
}

/** Pauses before the first, second, … try to load the model again. */
const retryMs = [0, 1000, 3000, 10_000, 30_000];

export class EngineHost {
  readonly #options: HostOptions;
  readonly #jobs = new Map<number, Job>();
  readonly #questions = new Questions();
  readonly #link: EngineLink;
  readonly #queue = new TurnQueue();
  /** The model that is loaded, or is being loaded. */
  #model: OfferedModel;
  /** The model that was loaded before, while another one comes. */
  #former: OfferedModel | undefined;
  #idleTimer: Timer | undefined;
  #state: EngineState = "loading";
  #facts: ModelFacts | undefined;
  #progress = 0;
  #nextId = 0;
  #lostCount = 0;
  #failedLoads = 0;
  readonly #loaded = Promise.withResolvers<ModelFacts>();
  readonly #onRest: (() => void)[] = [];

  constructor(options: HostOptions) {
    this.#options = options;
    // Whoever does not wait for it is no failure.
    this.#loaded.promise.catch(() => {});
    this.#model = options.main;
    this.#link = new EngineLink(options.connect, {
      receive: (message) => this.#receive(message),
      onDeath: (reason) => this.#lose({ kind: "failed", message: `the engine died: ${reason}` }),
    });
    this.#open();
  }

  get state(): EngineState {
    return this.#state;
  }

  /** The model that answers, or will when it is loaded. */
  get model(): OfferedModel {
    return this.#model;
  }

  /** Bytes that are held on the device. */
  get deviceBytes(): number {
    const isLoaded = this.#state === "ready" || this.#state === "draining";
    return isLoaded ? (this.#facts?.deviceBytes ?? 0) : 0;
  }

  /** Of the model that was loaded last. */
  get facts(): ModelFacts | undefined {
    return this.#facts;
  }

  /** Of loading, 0 to 1. */
  get progress(): number {
    return this.#progress;
  }

  /** Texts that are being made or wait for it. */
  get jobCount(): number {
    return this.#jobs.size;
  }

  /** Those of them that are being made. */
  get runningCount(): number {
    return Math.min(this.#jobs.size, this.#facts?.parallel ?? 1);
  }

  get waitingCount(): number {
    return this.#jobs.size - this.runningCount + this.#queue.count;
  }

  get lostCount(): number {
    return this.#lostCount;
  }

  /** Resolves when the model is loaded for the first time; rejects if it cannot be. */
  get loaded(): Promise<ModelFacts> {
    return this.#loaded.promise;
  }

  /** The facts of the model, or a 503 that says why there are none. */
  requireReady(): ModelFacts {
    const isKnown = this.#state === "ready" || this.#state === "unloaded";
    if (isKnown && this.#facts !== undefined) return this.#facts;
    throw notReady(this.#state);
  }

  /**
   * Starts texts, all or none, and waits until the engine has accepted each: with a model that has
   * to be loaded first, if need be. Throws an `ApiError`. They end when the signal is aborted.
   */
  async start(
    works: readonly (Work | EmbeddingWork)[],
    signal: AbortSignal,
    model: OfferedModel = this.#model,
  ): Promise<Job[]> {
    const jobs = await this.#turnOf(model, works.length, signal, () =>
      works.map((work) => this.#startOne(work, signal)),
    );
    try {
      await Promise.all(jobs.map(({ accepted }) => accepted));
    } catch (error) {
      for (const job of jobs) job.cancel();
      throw error;
    }
    return jobs;
  }

  /** Resolves when a model is loaded and it is its turn. Throws an `ApiError`. */
  async load(model: OfferedModel, signal: AbortSignal): Promise<void> {
    await this.#turnOf(model, 0, signal, () => {});
  }

  /** Asks the model that is loaded, or the one that was last. Throws an `ApiError`. */
  async ask(question: Question, signal?: AbortSignal): Promise<Reply> {
    const { promise, resolve } = Promise.withResolvers<Reply | Problem>();
    const send = () => {
      const id = this.#nextId++;
      this.#questions.add(id, resolve);
      this.#link.send({ type: "ask", id, question });
    };
    if (this.#state === "ready") send();
    else await this.#turnOf(this.#model, 0, signal, send);
    const reply = await promise;
    if ("kind" in reply) throw fromProblem(reply);
    return reply;
  }

  /** For tests: lets the engine die. */
  suffer(calamity: Calamity | "kill"): void {
    if (calamity !== "kill") this.#link.send({ type: "suffer", calamity });
    else this.#lose({ kind: "failed", message: "the engine was killed" });
  }

  /** Takes no more work, and waits for what there is; what is not done in time is cancelled. */
  async drain(timeoutMs: number): Promise<void> {
    this.#state = "draining";
    for (const turn of this.#queue.take()) turn.fail(shuttingDown());
    if (this.#jobs.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onRest.push(resolve);
    const timer = setTimeout(() => {
      for (const job of this.#jobs.values()) job.cancel();
    }, timeoutMs);
    await promise;
    clearTimeout(timer);
  }

  /** Ends the engine. */
  close(): void {
    this.#state = "draining";
    this.#keepAwake();
    for (const turn of this.#queue.take()) turn.fail(shuttingDown());
    this.#fail(shuttingDown());
    this.#link.send({ type: "close" });
  }

  /** Waits until the model is there and it is this one's turn; what it does then comes at once. */
  #turnOf<T>(
    model: OfferedModel,
    count: number,
    signal: AbortSignal | undefined,
    act: () => T,
  ): Promise<T> {
    // While one model makes place for another, whoever comes may wait.
    if (this.#former === undefined || this.#state === "draining") this.requireReady();
    const places = (this.#facts?.parallel ?? 1) + this.#options.queueMax;
    if (count > 0 && this.#jobs.size + this.#queue.count + count > places) {
      throw overloaded(this.waitingCount);
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const give = () => {
      if (this.#queue.remove(turn)) reject(signal?.reason);
      this.#takeTurns();
    };
    const turn: Turn = {
      model,
      count,
      begin: () => {
        signal?.removeEventListener("abort", give);
        if (count > 0) this.#keepAwake();
        resolve(act());
      },
      fail: reject,
    };
    this.#queue.add(turn);
    signal?.addEventListener("abort", give, { once: true });
    if (signal?.aborted === true) give();
    else this.#takeTurns();
    return promise;
  }

  /** Lets in all who want the model that is there, if they are next, or makes place for another. */
  #takeTurns(): void {
    if (this.#state === "ready" && this.#queue.next?.id === this.#model.id) {
      for (const turn of this.#queue.take(this.#model.id)) turn.begin();
    }
    const { next } = this.#queue;
    const isFree = this.#jobs.size === 0 && this.#questions.count === 0;
    const isSettled = this.#state === "ready" || this.#state === "unloaded";
    if (!isFree || !isSettled) return;
    if (next !== undefined) void this.#changeTo(next);
    else this.#idle();
  }

  /** Lets the model go if nobody asks for anything for a while. */
  #idle(): void {
    const { idleMs } = this.#options;
    if (idleMs === undefined || this.#state !== "ready") return;
    this.#idleTimer ??= setTimeout(() => {
      this.#idleTimer = undefined;
      if (this.#questions.count > 0) return this.#idle();
      this.#state = "unloaded";
      void this.#link.close();
    }, idleMs);
  }

  #keepAwake(): void {
    clearTimeout(this.#idleTimer);
    this.#idleTimer = undefined;
  }

  /** Loads another model once the memory of the one before is free. */
  async #changeTo(model: OfferedModel): Promise<void> {
    this.#keepAwake();
    this.#former = this.#model;
    this.#model = model;
    this.#state = "loading";
    this.#progress = 0;
    await this.#link.close();
    if (this.#state === "loading") this.#open();
  }

  /** What was wanted cannot be loaded; who wants another one may have it. */
  #failToChange(former: OfferedModel, { message }: Problem): void {
    const error = cannotLoad(this.#model, message);
    const waiting = this.#queue.take(this.#model.id);
    this.#model = former;
    this.#former = undefined;
    this.#state = "unloaded";
    this.#options.onWarning(error.message);
    for (const turn of waiting) turn.fail(error);
    this.#link.kill();
    this.#takeTurns();
  }

  /** Starts an engine for the model. */
  #open(): void {
    const { model, main } = this.#options;
    // What was said of the first model is a limit to others, or not about them.
    const { contextTokens: contextTokensMax } = model;
    const own = { contextTokens: undefined, contextTokensMax, template: undefined };
    const { id, path } = this.#model;
    this.#link.open(id === main.id ? model : { ...model, ...own, path });
  }

  #startOne(work: Work | EmbeddingWork, signal: AbortSignal): Job {
    const id = this.#nextId++;
    const job = new Job(() => this.#link.send({ type: "cancel", id }));
    this.#jobs.set(id, job);
    this.#link.send({ type: "start", id, work });
    const cancel = () => job.cancel();
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
    void job.ended.then(() => {
      signal.removeEventListener("abort", cancel);
      this.#jobs.delete(id);
      if (this.#jobs.size > 0) return;
      for (const resolve of this.#onRest.splice(0)) resolve();
      this.#takeTurns();
    });
    return job;
  }

  #receive(message: Heard): void {
    switch (message.type) {
      case "progress":
        this.#progress = message.totalBytes === 0 ? 1 : message.doneBytes / message.totalBytes;
        return;
      case "warning":
        return this.#options.onWarning(message.message);
      case "ready":
        return this.#becomeReady(message.facts);
      case "unloadable":
        return this.#failToLoad(message.problem);
      case "lost":
        return this.#lose(message.problem);
      case "accepted":
        return this.#jobs.get(message.id)?.accept(message.promptTokens);
      case "piece":
        return this.#jobs.get(message.id)?.add(message.piece);
      case "finished":
        return this.#jobs.get(message.id)?.finish(message.finish);
      case "refused":
        this.#jobs.get(message.id)?.fail(fromProblem(message.problem));
        this.#questions.answer(message.id, message.problem);
        return this.#takeTurns();
      case "replied":
        this.#questions.answer(message.id, message.reply);
        return this.#takeTurns();
    }
  }

  #becomeReady(facts: ModelFacts): void {
    if (this.#facts !== undefined) this.#options.onLoaded?.(facts);
    this.#facts = facts;
    this.#failedLoads = 0;
    this.#former = undefined;
    if (this.#state !== "draining") this.#state = "ready";
    this.#loaded.resolve(facts);
    this.#takeTurns();
  }

  /** At first that is the end; behind a loss the device may need a while. */
  #failToLoad(problem: Problem): void {
    if (this.#former !== undefined) return this.#failToChange(this.#former, problem);
    const { kind, message } = problem;
    const error = new UserError(kind === "bug" ? "failed" : kind, message);
    if (this.#facts === undefined) return this.#loaded.reject(error);
    this.#failedLoads++;
    this.#options.onWarning(`the model could not be loaded again: ${message}`);
    this.#restart();
  }

  #lose(problem: Problem): void {
    this.#lostCount++;
    if (this.#facts === undefined) {
      return this.#loaded.reject(new UserError("failed", problem.message));
    }
    if (this.#former !== undefined) return this.#failToChange(this.#former, problem);
    const message = `the engine was lost: ${problem.message}`;
    if (this.#state !== "draining") this.#state = "device_lost";
    this.#fail(new ApiError(500, "server_error", message, { code: "device_lost" }));
    const goesOn = this.#options.onLost(message);
    if (goesOn && this.#state !== "draining") this.#restart();
  }

  #restart(): void {
    this.#link.kill();
    const open = () => this.#state !== "draining" && this.#open();
    setTimeout(open, retryMs[Math.min(this.#failedLoads, retryMs.length - 1)]);
  }

  #fail(error: ApiError): void {
    for (const job of this.#jobs.values()) job.fail(error);
    this.#questions.failAll(error.message);
  }
}
