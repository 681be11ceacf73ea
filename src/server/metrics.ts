/** Numbers for Prometheus. */
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import type { EngineHost } from "./engine-host.ts";
import type { EngineGauges, Finish } from "./protocol.ts";

const latencyBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const tokenBuckets = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 1, 5];

const noGauges: EngineGauges = {
  freeBlocks: 0,
  idleBlocks: 0,
  steps: 0,
  rows: 0,
  preemptions: 0,
  drafted: 0,
  accepted: 0,
};

type Read = (host: EngineHost, engine: EngineGauges) => number;

/** What is read when somebody asks. */
const readings: Readonly<Record<string, { readonly help: string; readonly read: Read }>> = {
  zinc_ready: {
    help: "1 if requests are served",
    read: ({ state }) => (state === "ready" ? 1 : 0),
  },
  zinc_requests_running: {
    help: "Answers that are being made side by side",
    read: ({ runningCount }) => runningCount,
  },
  zinc_requests_waiting: {
    help: "Answers that wait for their turn",
    read: ({ waitingCount }) => waitingCount,
  },
  zinc_engine_restarts_total: {
    help: "How often the device was lost or the engine died",
    read: ({ lostCount }) => lostCount,
  },
  zinc_device_memory_bytes: {
    help: "Memory that is held on the device",
    read: ({ deviceBytes }) => deviceBytes,
  },
  zinc_device_memory_budget_bytes: {
    help: "Memory that was free on the device before the model came",
    read: ({ facts }) => facts?.deviceBudgetBytes ?? 0,
  },
  zinc_context_tokens: {
    help: "Tokens that prompt and answer share",
    read: ({ facts }) => facts?.contextTokens ?? 0,
  },
  zinc_cache_tokens: {
    help: "Tokens that the cache of keys and values has room for",
    read: ({ facts }) => facts?.cacheTokens ?? 0,
  },
  zinc_cache_blocks_free: {
    help: "Blocks of the cache that hold nothing",
    read: (_host, { freeBlocks }) => freeBlocks,
  },
  zinc_cache_blocks_idle: {
    help: "Blocks of the cache that hold prefixes nobody uses now",
    read: (_host, { idleBlocks }) => idleBlocks,
  },
  zinc_engine_steps_total: {
    help: "Steps of the engine",
    read: (_host, { steps }) => steps,
  },
  zinc_engine_rows_total: {
    help: "Rows of work in all steps; by steps, the size of a batch",
    read: (_host, { rows }) => rows,
  },
  zinc_engine_preemptions_total: {
    help: "Answers that had to wait because the cache was full",
    read: (_host, { preemptions }) => preemptions,
  },
  zinc_draft_tokens_total: {
    help: "Tokens that were guessed ahead and verified",
    read: (_host, { drafted }) => drafted,
  },
  zinc_accepted_draft_tokens_total: {
    help: "Tokens that were guessed ahead and right",
    read: (_host, { accepted }) => accepted,
  },
  process_resident_memory_bytes: {
    help: "Memory of the process",
    read: () => process.memoryUsage.rss(),
  },
};

export class Metrics {
  readonly #host: EngineHost;
  readonly #registry = new Registry();
  readonly requests = new Counter({
    name: "zinc_requests_total",
    help: "Requests that were answered, by route and status",
    labelNames: ["route", "status"],
    registers: [this.#registry],
  });
  readonly cancelled = this.#counter(
    "zinc_requests_cancelled_total",
    "Requests whose clients went away before they were answered",
  );
  readonly firstToken = this.#histogram(
    "zinc_time_to_first_token_seconds",
    "From a request to the first piece of its answer",
    latencyBuckets,
  );
  readonly interToken = this.#histogram(
    "zinc_inter_token_latency_seconds",
    "From one piece of an answer to the next",
    tokenBuckets,
  );
  readonly #queueWait = this.#histogram(
    "zinc_queue_wait_seconds",
    "From a request to its turn at the device",
    latencyBuckets,
  );
  readonly #promptTokens = this.#counter("zinc_prompt_tokens_total", "Tokens of prompts");
  readonly #cachedTokens = this.#counter(
    "zinc_cached_prompt_tokens_total",
    "Tokens of prompts that did not have to be computed",
  );
  readonly #madeTokens = this.#counter("zinc_generated_tokens_total", "Tokens of answers");

  #engine: EngineGauges = noGauges;

  /** Gauges read the host when they are asked for. */
  constructor(host: EngineHost) {
    this.#host = host;
    for (const [name, { help, read }] of Object.entries(readings)) {
      const value = () => read(host, this.#engine);
      if (name.endsWith("_total")) this.#countReading(name, help, value);
      else this.#gaugeReading(name, help, value);
    }
  }

  countAnswer({ promptTokens, cachedTokens, tokens, queueMs }: Finish): void {
    this.#promptTokens.inc(promptTokens);
    this.#cachedTokens.inc(cachedTokens);
    this.#madeTokens.inc(tokens);
    this.#queueWait.observe(queueMs / 1000);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  async text(): Promise<string> {
    if (this.#host.state === "ready") {
      const reply = await this.#host.ask({ type: "gauges" });
      if (reply.type === "gauges") this.#engine = reply.gauges;
    }
    return this.#registry.metrics();
  }

  #gaugeReading(name: string, help: string, read: () => number): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.set(read());
      },
    });
  }

  /** What is counted elsewhere. */
  #countReading(name: string, help: string, read: () => number): void {
    new Counter({
      name,
      help,
      registers: [this.#registry],
      collect() {
        this.reset();
        this.inc(read());
      },
    });
  }

  #counter(name: string, help: string): Counter {
    return new Counter({ name, help, registers: [this.#registry] });
  }

  #histogram(name: string, help: string, buckets: number[]): Histogram {
    return new Histogram({ name, help, buckets, registers: [this.#registry] });
  }
}
