/** One request on its way to an answer: who asks, how long it may take, and what the log says. */
import { ApiError } from "./api-error.ts";
import type { Job } from "./job.ts";
import type { EmbeddingWork, Finish, Piece, Work } from "./protocol.ts";
import type { Service } from "./service.ts";
import type { OfferedModel } from "./shelf.ts";

/** What is known of a request in the end. Neither prompts nor keys are part of it. */
export interface LogEntry {
  readonly time: string;
  readonly id: string;
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly ms: number;
  readonly promptTokens?: number | undefined;
  readonly tokens?: number | undefined;
  readonly firstTokenMs?: number | undefined;
  readonly queueMs?: number | undefined;
  readonly finish?: string | undefined;
  readonly error?: string | undefined;
}

/** The client went away: nobody reads what is answered. */
export class ClientGone extends Error {
  override readonly name = "ClientGone";
}

/** What nginx logs then. */
const clientGoneStatus = 499;

export interface ExchangeParts {
  readonly service: Service;
  readonly request: Request;
  readonly client: string;
  readonly route: string;
  readonly log: (entry: LogEntry) => void;
}

export class Exchange {
  readonly id = `req_${crypto.randomUUID().replaceAll("-", "")}`;
  readonly service: Service;
  readonly request: Request;
  /** The path as the table of routes has it: what is asked for in full may be private. */
  route: string;
  /** Aborted when the client is gone or time is up. */
  readonly signal: AbortSignal;
  /** What goes in at the end of the response, if it is streamed. */
  isStreaming = false;
  /** For the log. */
  promptTokens: number | undefined;
  readonly #deadline: AbortController = new AbortController();
  readonly #gone = new AbortController();
  readonly #timer: Timer;
  readonly #started = performance.now();
  #client: string;
  #model: OfferedModel;
  readonly #log: (entry: LogEntry) => void;
  #isFinished = false;
  #firstMs: number | undefined;
  #finishes: Finish[] = [];

  constructor({ service, request, client, route, log }: ExchangeParts) {
    this.service = service;
    this.request = request;
    this.#client = client;
    this.#model = service.host.model;
    this.route = route;
    this.#log = log;
    const { timeoutMs } = service.options;
    this.#timer = setTimeout(() => this.#deadline.abort(), timeoutMs);
    const { signal } = this.#gone;
    this.signal = AbortSignal.any([request.signal, this.#deadline.signal, signal]);
  }

  /** Whom the answer is for, as far as shares are concerned: an address, or a key. */
  get client(): string {
    return this.#client;
  }

  /** Who brings a key is known by it. */
  useKey(index: number | undefined): void {
    if (index !== undefined) this.#client = `key ${index}`;
  }

  /** The client does not read any more. */
  abandon(): void {
    this.#gone.abort();
  }

  /** Chooses the model that the request names. Throws an `ApiError` if it may not. */
  useModel(name: string | undefined): OfferedModel {
    this.#model = this.service.modelOf(name);
    return this.#model;
  }

  /** The name of the model that answers. */
  get modelId(): string {
    return this.#model.id;
  }

  /** Resolves when the model is loaded. */
  async load(): Promise<void> {
    await this.#waiting(this.service.host.load(this.#model, this.signal));
  }

  /** Starts texts, once the engine has accepted them. */
  async start(works: readonly (Work | EmbeddingWork)[]): Promise<Job[]> {
    const jobs = await this.#waiting(this.service.host.start(works, this.signal, this.#model));
    // Several answers to one prompt share it.
    this.promptTokens = jobs[0]?.promptTokens;
    return jobs;
  }

  /** The pieces of a text. Throws if it ends because the client is gone or time is up. */
  async *read(job: Job): AsyncGenerator<Piece, Finish> {
    const { metrics } = this.service;
    let last = performance.now();
    for await (const piece of job) {
      const now = performance.now();
      if (this.#firstMs === undefined) {
        this.#firstMs = now - this.#started;
        metrics.firstToken.observe(this.#firstMs / 1000);
      } else metrics.interToken.observe((now - last) / 1000);
      last = now;
      yield piece;
    }
    const finish = job.result;
    if (finish === undefined) throw new ApiError(500, "server_error", "the answer has no end");
    this.#finishes.push(finish);
    metrics.countAnswer(finish);
    if (finish.reason === "cancelled") throw this.#interruption();
    return finish;
  }

  /** Waits for the end of a job that gives no pieces. Throws as `read` does. */
  async finishOf(job: Job): Promise<Finish> {
    const pieces = this.read(job);
    for (;;) {
      const next = await pieces.next();
      if (next.done === true) return next.value;
    }
  }

  /** Writes the log, once. */
  finish(status: number, error?: unknown): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    clearTimeout(this.#timer);
    const isGone = error instanceof ClientGone || (this.isGone && status !== 200);
    const shown = isGone ? clientGoneStatus : status;
    const { metrics } = this.service;
    metrics.requests.inc({ route: this.route, status: String(shown) });
    if (isGone) metrics.cancelled.inc();
    const sum = (of: (finish: Finish) => number) =>
      this.#finishes.length === 0 ? undefined : this.#finishes.reduce((n, f) => n + of(f), 0);
    this.#log({
      time: new Date().toISOString(),
      id: this.id,
      method: this.request.method,
      route: this.route,
      status: shown,
      ms: Math.round(performance.now() - this.#started),
      promptTokens: this.promptTokens,
      tokens: sum(({ tokens }) => tokens),
      firstTokenMs: this.#firstMs === undefined ? undefined : Math.round(this.#firstMs),
      queueMs: this.#finishes[0] && Math.round(this.#finishes[0].queueMs),
      finish: this.#finishes[0]?.reason,
      error: isGone ? "the client went away" : describe(error),
    });
  }

  async #waiting<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw this.signal.aborted ? this.#interruption() : error;
    }
  }

  get isGone(): boolean {
    return this.request.signal.aborted || this.#gone.signal.aborted;
  }

  #interruption(): Error {
    if (this.isGone) return new ClientGone("the client went away");
    if (!this.#deadline.signal.aborted) {
      return new ApiError(503, "unavailable_error", "the server is shutting down", {
        code: "draining",
      });
    }
    const seconds = this.service.options.timeoutMs / 1000;
    return new ApiError(504, "timeout_error", `no complete answer within ${seconds} s`, {
      code: "timeout",
      // The same again would take as long.
      headers: { "x-should-retry": "false" },
    });
  }
}

/** Codes and numbers only: messages may quote what was sent. */
function describe(error: unknown): string | undefined {
  if (error === undefined) return undefined;
  if (!(error instanceof ApiError)) return error instanceof Error ? error.name : "unknown";
  const { type, details } = error;
  return details.code ?? (details.param === undefined ? type : `${type} in ${details.param}`);
}
