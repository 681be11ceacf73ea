/**
 * The server as clients meet it, on a real socket, with an engine whose tokens a test dictates: the
 * tokenizer and the template are those of the model inside zinc, and there is no device.
 */
import { builtinChat } from "./builtin-chat.ts";
import { ChatTemplate } from "../../src/chat/template.ts";
import type { AccessOptions } from "../../src/server/access.ts";
import { EngineHost } from "../../src/server/engine-host.ts";
import { EngineRoom } from "../../src/server/engine-room.ts";
import type { LogEntry } from "../../src/server/exchange.ts";
import { Metrics } from "../../src/server/metrics.ts";
import type { FromEngine, ModelFacts, ToEngine } from "../../src/server/protocol.ts";
import { Server } from "../../src/server/server.ts";
import { Service, type ServiceOptions } from "../../src/server/service.ts";
import type { ScriptedSource } from "./scripted-source.ts";

export interface ServedOptions {
  readonly source: ScriptedSource;
  readonly contextTokens?: number;
  readonly queueMax?: number;
  readonly hostname?: string;
  /** Instead of that of the model inside zinc. */
  readonly template?: string;
  readonly access?: Partial<AccessOptions>;
  readonly service?: Partial<ServiceOptions>;
  readonly page?: (request: Request) => Response | undefined;
  /** Loading ends when this does. */
  readonly loading?: Promise<void>;
}

export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly host: EngineHost;
  readonly server: Server;
  readonly log: LogEntry[];
  readonly warnings: string[];
  get(path: string, init?: RequestInit): Promise<Response>;
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
}

export async function serve(options: ServedOptions): Promise<Served> {
  const { source, queueMax = 64, access = {}, hostname = "127.0.0.1" } = options;
  const log: LogEntry[] = [];
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const host = new EngineHost({
    model: noOptions,
    queueMax,
    connect: (receive) => connect(options, receive),
    onWarning: warn,
    onLost: () => true,
  });
  const service = new Service(host, new Metrics(host), {
    modelId: "spark",
    strictModel: false,
    timeoutMs: 20_000,
    sampling: {},
    pingMs: 10_000,
    version: "0.1.0",
    testHooks: false,
    warn,
    ...options.service,
  });
  const server = new Server(service, {
    hostname,
    port: 0,
    access: { keys: [], origins: [], ...access },
    log: (entry) => log.push(entry),
    page: options.page,
  });
  if (options.loading === undefined) await host.loaded;
  source.reset();
  const url = server.url.replace(/\/$/, "");
  return {
    url,
    host,
    server,
    log,
    warnings,
    get: (path, init) => fetch(url + path, init),
    post: (path, body, init) =>
      fetch(url + path, {
        method: "POST",
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...init,
        headers: { "content-type": "application/json", ...init?.headers },
      }),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

const noOptions = {
  path: undefined,
  device: undefined,
  kvType: undefined,
  contextTokens: undefined,
  parallel: 4,
  deterministic: false,
  template: undefined,
};

const gauges = { freeBlocks: 5, idleBlocks: 2, steps: 3, rows: 6, preemptions: 0 };

/** An engine room in this thread; what is said takes a turn of the event loop each way. */
function connect(options: ServedOptions, receive: (message: FromEngine) => void) {
  const { source, contextTokens = 512, loading } = options;
  const room = new EngineRoom(
    {
      async load() {
        await loading;
        const builtin = await builtinChat();
        const { tokenizer } = builtin;
        const template =
          options.template === undefined ? builtin.template : new ChatTemplate(options.template);
        const chat = { ...builtin, template };
        const facts: ModelFacts = {
          name: "Spark Llama",
          architecture: "llama",
          contextTokens,
          trainedContextTokens: 2048,
          vocabularySize: tokenizer.vocabSize,
          deviceName: "a script",
          deviceBytes: 1000,
          deviceBudgetBytes: 4000,
          cacheTokens: 2048,
          cache: "f16 with 8.19 kB a token",
          loadMs: 1,
          hasTokenizer: true,
          template: template.source,
          templateSource: "model",
          parallel: source.parallel,
        };
        const vocabularySize = tokenizer.vocabSize;
        return {
          tokenizer,
          chat,
          tokens: source,
          contextTokens,
          vocabularySize,
          facts,
          gauges: () => gauges,
          close() {},
        };
      },
      isDeviceLost: (error) => error instanceof Error && error.message === "device lost",
    },
    (message) => setImmediate(() => receive(structuredClone(message))),
  );
  return {
    send: (message: ToEngine) => {
      const copy = structuredClone(message);
      setImmediate(() => void room.receive(copy));
    },
    kill: () => room.close(),
  };
}
