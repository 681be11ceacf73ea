/**
 * The HTTP thread's side of the engine: sends it work, hands on what comes back, starts it anew
 * when it dies, and says what state it is in.
 */
import { UserError } from "../errors.ts";
import { ApiError, fromProblem, unavailable } from "./api-error.ts";
import { Job } from "./job.ts";
import type {
  Calamity,
  EmbeddingWork,
  EnginePort,
  FromEngine,
  ModelFacts,
  ModelOptions,
  Problem,
  Question,
  Reply,
  Work,
} from "./protocol.ts";

export type EngineState = "loading" | "ready" | "draining" | "device_lost";

export interface HostOptions {
  readonly model: ModelOptions;
  /** Texts that may wait for their turn; more are refused. */
  readonly queueMax: number;
  /** Starts an engine whose messages go to `receive`; `onDeath` is told if it ends by itself. */
  readonly connect: (
    receive: (message: FromEngine) => void,
    onDeath: (reason: string) => void,
  ) => EnginePort;
  readonly onWarning: (message: string) => void;
  /** The engine died; it is started anew unless this says not to. */
  readonly onLost: (message: string) => boolean;
}

/** Pauses before the first, second, … try to load the model again. */
const retryMs = [0, 1000, 3000, 10_000, 30_000];

export class EngineHost {
  readonly #options: HostOptions;
  readonly #jobs = new Map<number, Job>();
  readonly #questions = new Map<number, (reply: Reply | Problem) => void>();
  #port: EnginePort;
  #state: EngineState = "loading";
  #facts: ModelFacts | undefined;
  #progress = 0;
  #nextId = 0;
  #lostCount = 0;
  #failedLoads = 0;
  readonly #loaded = Promise.withResolvers<ModelFacts>();
  readonly #idle: (() => void)[] = [];

  constructor(options: HostOptions) {
    this.#options = options;
    // Whoever does not wait for it is no failure.
    this.#loaded.promise.catch(() => {});
    this.#port = this.#connect();
  }

  get state(): EngineState {
    return this.#state;
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

  get waitingCount(): number {
    return Math.max(0, this.#jobs.size - (this.#facts?.parallel ?? 1));
  }

  get lostCount(): number {
    return this.#lostCount;
  }

  /** Resolves when the model is loaded for the first time; rejects if it cannot be. */
  get loaded(): Promise<ModelFacts> {
    return this.#loaded.promise;
  }

  /** The facts, or a 503 that says why there are none. */
  requireReady(): ModelFacts {
    if (this.#state === "ready" && this.#facts !== undefined) return this.#facts;
    switch (this.#state) {
      case "draining":
        throw unavailable("the server is shutting down", "draining", 5);
      case "device_lost":
        throw unavailable("the device was lost, and the model is loaded again", "device_lost", 5);
      default:
        throw unavailable("the model is still loading", "loading", 2);
    }
  }

  /**
   * Starts texts, all or none, and waits until the engine has accepted each. Throws an `ApiError`.
   * They end when the signal is aborted.
   */
  async start(works: readonly (Work | EmbeddingWork)[], signal: AbortSignal): Promise<Job[]> {
    const { parallel } = this.requireReady();
    if (this.#jobs.size + works.length > parallel + this.#options.queueMax) {
      const message = `${this.waitingCount} requests are waiting already`;
      throw unavailable(`the server is busy: ${message}`, "overloaded", 2);
    }
    const jobs = works.map((work) => this.#startOne(work, signal));
    try {
      await Promise.all(jobs.map(({ accepted }) => accepted));
    } catch (error) {
      for (const job of jobs) job.cancel();
      throw error;
    }
    return jobs;
  }

  async ask(question: Question): Promise<Reply> {
    this.requireReady();
    const id = this.#nextId++;
    const { promise, resolve } = Promise.withResolvers<Reply | Problem>();
    this.#questions.set(id, resolve);
    this.#port.send({ type: "ask", id, question });
    const reply = await promise;
    if ("kind" in reply) throw fromProblem(reply);
    return reply;
  }

  /** For tests: lets the engine die. */
  suffer(calamity: Calamity | "kill"): void {
    if (calamity !== "kill") this.#port.send({ type: "suffer", calamity });
    else this.#lose({ kind: "failed", message: "the engine was killed" });
  }

  /** Takes no more work, and waits for what there is; what is not done in time is cancelled. */
  async drain(timeoutMs: number): Promise<void> {
    this.#state = "draining";
    if (this.#jobs.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle.push(resolve);
    const timer = setTimeout(() => {
      for (const job of this.#jobs.values()) job.cancel();
    }, timeoutMs);
    await promise;
    clearTimeout(timer);
  }

  /** Ends the engine. */
  close(): void {
    this.#state = "draining";
    this.#fail(unavailable("the server is shutting down", "draining", 5));
    this.#port.send({ type: "close" });
  }

  #connect(): EnginePort {
    let isCurrent = true;
    const port = this.#options.connect(
      (message) => {
        if (isCurrent) this.#receive(message);
      },
      (reason) => {
        if (isCurrent) this.#lose({ kind: "failed", message: `the engine died: ${reason}` });
      },
    );
    const connection = {
      send: (message: Parameters<EnginePort["send"]>[0]) => port.send(message),
      kill: () => {
        isCurrent = false;
        port.kill();
      },
    };
    connection.send({ type: "load", options: this.#options.model });
    return connection;
  }

  #startOne(work: Work | EmbeddingWork, signal: AbortSignal): Job {
    const id = this.#nextId++;
    const job = new Job(() => this.#port.send({ type: "cancel", id }));
    this.#jobs.set(id, job);
    this.#port.send({ type: "start", id, work });
    const cancel = () => job.cancel();
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
    void job.ended.then(() => {
      signal.removeEventListener("abort", cancel);
      this.#jobs.delete(id);
      if (this.#jobs.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
    });
    return job;
  }

  #receive(message: FromEngine): void {
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
        return this.#resolveQuestion(message.id, message.problem);
      case "replied":
        return this.#resolveQuestion(message.id, message.reply);
      case "closed":
        return;
    }
  }

  #resolveQuestion(id: number, reply: Reply | Problem): void {
    this.#questions.get(id)?.(reply);
    this.#questions.delete(id);
  }

  #becomeReady(facts: ModelFacts): void {
    this.#facts = facts;
    this.#failedLoads = 0;
    if (this.#state !== "draining") this.#state = "ready";
    this.#loaded.resolve(facts);
  }

  /** At first that is the end; behind a loss the device may need a while. */
  #failToLoad({ kind, message }: Problem): void {
    const error = new UserError(kind === "bug" ? "failed" : kind, message);
    if (this.#facts === undefined) return this.#loaded.reject(error);
    this.#failedLoads++;
    this.#options.onWarning(`the model could not be loaded again: ${message}`);
    this.#restart();
  }

  #lose(problem: Problem): void {
    this.#lostCount++;
    if (this.#facts === undefined) {
      this.#loaded.reject(new UserError("failed", problem.message));
      return;
    }
    const message = `the engine was lost: ${problem.message}`;
    if (this.#state !== "draining") this.#state = "device_lost";
    this.#fail(new ApiError(500, "server_error", message, { code: "device_lost" }));
    const goesOn = this.#options.onLost(message);
    if (goesOn && this.#state !== "draining") this.#restart();
  }

  #restart(): void {
    this.#port.kill();
    const pauseMs = retryMs[Math.min(this.#failedLoads, retryMs.length - 1)] ?? 0;
    setTimeout(() => {
      if (this.#state !== "draining") this.#port = this.#connect();
    }, pauseMs);
  }

  #fail(error: ApiError): void {
    for (const job of this.#jobs.values()) job.fail(error);
    const { message } = error;
    for (const id of [...this.#questions.keys()]) {
      this.#resolveQuestion(id, { kind: "failed", message });
    }
  }
}
