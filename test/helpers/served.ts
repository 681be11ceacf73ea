/**
 * The server as clients meet it, on a real socket, with an engine whose tokens a test dictates: the
 * tokenizer and the template are those of the model inside zinc, and there is no device.
 */
import { builtinChat } from "./builtin-chat.ts";
import { ChatTemplate } from "../../src/chat/template.ts";
import type { AccessOptions } from "../../src/server/access.ts";
import { Grammars, vocabularyOf, type MaskMaker } from "../../src/chat/shape/grammars.ts";
import { EngineHost } from "../../src/server/engine-host.ts";
import { EngineRoom } from "../../src/server/engine-room.ts";
import type { LogEntry } from "../../src/server/exchange.ts";
import { Metrics } from "../../src/server/metrics.ts";
import type { FromEngine, ModelFacts, ToEngine } from "../../src/server/protocol.ts";
import { UserError } from "../../src/errors.ts";
import { Server } from "../../src/server/server.ts";
import { Service, type ServiceOptions } from "../../src/server/service.ts";
import type { Shelf } from "../../src/server/shelf.ts";
import type { ScriptedSource } from "./scripted-source.ts";

export interface ServedOptions {
  readonly source: ScriptedSource;
  readonly contextTokens?: number;
  readonly queueMax?: number;
  readonly hostname?: string;
  /** Models beside "spark"; one called "broken" cannot be loaded. */
  readonly others?: readonly string[];
  readonly idleMs?: number;
  /** Instead of a grammar engine in this thread. */
  readonly masks?: MaskMaker;
  /** Told of every model that is loaded, and of its end. */
  readonly onEngine?: (event: string) => void;
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
  const shelf = shelfOf(["spark", ...(options.others ?? [])]);
  const log: LogEntry[] = [];
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  const host = new EngineHost({
    model: noOptions,
    main: shelf.main,
    idleMs: options.idleMs,
    queueMax,
    connect: (receive) => connect(options, receive),
    onWarning: warn,
    onLost: () => true,
  });
  const service = new Service(host, new Metrics(host), {
    shelf,
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

function shelfOf(names: readonly string[]): Shelf {
  const models = names.map((id) => ({ id, path: `${id}.gguf` }));
  const [main = { id: "spark", path: undefined }] = models;
  return {
    main,
    list: () => models,
    find: (name) => models.find(({ id }) => id === name),
  };
}

const noOptions = {
  path: "spark.gguf",
  device: undefined,
  kvType: undefined,
  contextTokens: undefined,
  parallel: 4,
  deterministic: false,
  drafts: undefined,
  template: undefined,
};

const gauges = {
  freeBlocks: 5,
  idleBlocks: 2,
  steps: 3,
  rows: 6,
  preemptions: 0,
  drafted: 8,
  accepted: 5,
};

/** An engine room in this thread; what is said takes a turn of the event loop each way. */
function connect(options: ServedOptions, receive: (message: FromEngine) => void) {
  const { source, contextTokens = 512, loading, onEngine = () => {} } = options;
  const room = new EngineRoom(
    {
      async load({ path }) {
        await loading;
        onEngine(`load ${path}`);
        if (path === "broken.gguf") {
          throw new UserError("memory", "it needs 9 GB and there are 4", "take a smaller one");
        }
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
          width: 4,
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
          close: () => onEngine(`close ${path}`),
        };
      },
      masks: (tokenizer) => options.masks ?? new Grammars(() => vocabularyOf(tokenizer)),
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
