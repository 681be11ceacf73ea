/** `zinc serve`: the HTTP server, until a signal ends it. */
import { isLoopbackName } from "../server/access.ts";
import { EngineHost } from "../server/engine-host.ts";
import type { LogEntry } from "../server/exchange.ts";
import type { ModelFacts } from "../server/protocol.ts";
import { Metrics } from "../server/metrics.ts";
import { Server } from "../server/server.ts";
import { Service } from "../server/service.ts";
import type { OfferedModel, Shelf } from "../server/shelf.ts";
import { connectWorker } from "../server/worker-port.ts";
import { UserError } from "../errors.ts";
import { formatBytes } from "../math.ts";
import { page } from "../web/page.ts";
import { command } from "./command.ts";
import { integer, number, oneOf, text, texts, toggle, type Values } from "./flag.ts";
import {
  contextFlags,
  draftFlags,
  modelEnvironment,
  modelFlags,
  outputFlags,
  placeFlags,
  promptFlags,
  samplingFlags,
} from "./flags.ts";
import { readTextFile } from "./input.ts";
import { runExitCodes } from "./manual.ts";
import { chooseModel, nameOfModel } from "./model-choice.ts";
import { modelShelf } from "./model-shelf.ts";
import { note, printError, setQuiet, warn } from "./output.ts";
import { Progress } from "./progress.ts";
import { signalExitCode, stopGently, stopSignal } from "./signals.ts";
import { version } from "./version.ts";

const { temp, topK, topP, minP, repeatPenalty } = samplingFlags;

const flags = {
  ...modelFlags,
  host: text("address", "where to listen; 0.0.0.0 for everywhere (default 127.0.0.1)"),
  port: integer("n", "port to listen on, 0 for a free one (default 8080)", { min: 0, max: 65535 }),
  open: toggle("open the chat page in a browser"),
  apiKey: texts("key", "ask for this key; a file is safer; may be repeated"),
  apiKeyFile: text("file", "ask for one of the keys in this file, a line each", {
    completes: "files",
  }),
  cors: texts("origin", "let pages of this origin use the API, * of all; may be repeated"),
  alias: text("name", "the model's name in the API (default that of model or file)"),
  strictModel: toggle("refuse requests that name a model which is not offered"),
  singleModel: toggle("offer this model alone, not the others that are installed"),
  idleUnload: number("s", "unload the model after so many idle seconds (default never)", {
    above: 0,
  }),
  parallel: integer("n", "requests that are answered side by side (default 8)", {
    min: 1,
    max: 256,
  }),
  queue: integer("n", "requests that may wait for their turn (default 64)", { min: 0 }),
  timeout: number("s", "seconds that a request may take (default 600)", { above: 0 }),
  drainTimeout: number("s", "seconds for requests to end on a signal (default 30)", { min: 0 }),
  exitOnDeviceLoss: toggle("end with code 1 when the device is lost; else load again"),
  template: promptFlags.template,
  ...contextFlags,
  ...draftFlags,
  ...placeFlags,
  temp,
  topK,
  topP,
  minP,
  repeatPenalty,
  logFormat: oneOf(["text", "json"], "a line a request, for people or programs (default text)"),
  quiet: outputFlags.quiet,
} as const;

type ServeValues = Values<typeof flags>;

const usualPort = 8080;
const usualParallel = 8;
const usualQueue = 64;
const usualTimeoutS = 600;
const usualDrainS = 30;
const pingMs = 10_000;

export const serveCommand = command({
  name: "serve",
  summary: "Serve the model over HTTP",
  description: `
    Answers requests in the APIs of OpenAI, Anthropic and Ollama, many at once, and shows a page
    to talk to the model. It listens to this machine alone, unless --host says otherwise.

    A request that names another installed model gets it: the one before is unloaded first, and
    requests wait meanwhile. --template is about the model that the server starts with.

    On Ctrl+C or SIGTERM it answers those who are there and ends; a second signal ends it at
    once.
  `,
  examples: {
    "zinc serve --open": "the page, in a browser",
    "zinc serve -m qwen3.5-2b --port 8000 --parallel 16": "more requests side by side",
    "zinc serve --host 0.0.0.0 --api-key-file keys.txt": "for others, who need a key",
    "zinc serve --log-format json 2> requests.jsonl": "a log for programs",
  },
  environment: { ...modelEnvironment, ZINC_API_KEY: "the key to ask for" },
  exitCodes: { ...runExitCodes, 130: "it was ended with Ctrl+C; 143: it was terminated" },
  flags,
  async run(values) {
    setQuiet(values.quiet === true);
    const { host: hostname = "127.0.0.1", port = usualPort } = values;
    const keys = await readKeys(values);
    const lost = Promise.withResolvers<never>();
    lost.promise.catch(() => {});
    const path = chooseModel(values.model);
    const main = { id: values.alias ?? nameOfModel(path), path };
    const shelf = modelShelf(main, values.singleModel === true);
    const engine = await startEngine(main, values, lost.reject);
    const server = new Server(createService(shelf, values, engine), {
      hostname,
      port,
      access: { keys, origins: values.cors ?? [] },
      log: (entry) => writeLog(entry, values.logFormat ?? "text"),
      page,
    });
    try {
      note(`listening on ${server.url}`);
      if (keys.length === 0 && !isLoopbackName(hostname)) warnOfOpenDoor(hostname);
      await Promise.race([announce(engine), lost.promise]);
      if (values.open === true) openBrowser(server.url);
      stopGently();
      await Promise.race([signalled(), lost.promise]);
      if (engine.jobCount > 0) {
        note(`${engine.jobCount} requests are still answered; a second signal ends them`);
      }
      await server.drain((values.drainTimeout ?? usualDrainS) * 1000);
    } finally {
      await server.close();
    }
    return signalExitCode() ?? 0;
  },
});

async function startEngine(
  main: OfferedModel,
  values: ServeValues,
  giveUp: (error: UserError) => void,
): Promise<EngineHost> {
  const { device, devices, deviceMemory, ctx, kvType, deterministic, draft, template } = values;
  return new EngineHost({
    main,
    model: {
      path: main.path,
      device,
      devices,
      deviceMemory,
      contextTokens: ctx,
      kvType,
      parallel: values.parallel ?? usualParallel,
      deterministic: deterministic === true,
      drafts: draft,
      template: template === undefined ? undefined : await readTextFile(template),
    },
    idleMs: values.idleUnload === undefined ? undefined : values.idleUnload * 1000,
    queueMax: values.queue ?? usualQueue,
    connect: connectWorker,
    onWarning: once(warn),
    onLoaded: describe,
    onLost(message) {
      printError(message);
      if (values.exitOnDeviceLoss === true) giveUp(new UserError("failed", message));
      return values.exitOnDeviceLoss !== true;
    },
  });
}

function createService(shelf: Shelf, values: ServeValues, engine: EngineHost): Service {
  return new Service(engine, new Metrics(engine), {
    shelf,
    strictModel: values.strictModel === true,
    timeoutMs: (values.timeout ?? usualTimeoutS) * 1000,
    sampling: {
      temperature: values.temp,
      topK: values.topK,
      topP: values.topP,
      minP: values.minP,
      repeatPenalty: values.repeatPenalty,
    },
    pingMs,
    version,
    testHooks: process.env["ZINC_TEST_HOOKS"] === "1",
    warn,
  });
}

async function readKeys({ apiKey = [], apiKeyFile }: ServeValues): Promise<string[]> {
  const text = apiKeyFile === undefined ? "" : await readTextFile(apiKeyFile);
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  if (apiKeyFile !== undefined && lines.length === 0) {
    throw new UserError("usage", `${apiKeyFile} holds no key`, "write one key a line into it");
  }
  return [...apiKey, ...lines];
}

function warnOfOpenDoor(hostname: string): void {
  warn(
    `everybody who reaches ${hostname} can use this server, for there is no --api-key; ` +
      "set one, or leave out --host",
  );
}

function openBrowser(url: string): void {
  const openers: Readonly<Record<string, string[]>> = {
    darwin: ["open"],
    win32: ["cmd", "/c", "start", ""],
  };
  const [program = "", ...args] = openers[process.platform] ?? ["xdg-open"];
  try {
    Bun.spawn([program, ...args, url], { stdio: ["ignore", "ignore", "ignore"] }).unref();
  } catch {
    warn(`no browser could be opened (${program} is missing); open ${url} yourself`);
  }
}

/** Waits until the model is loaded, and says what it is. */
async function announce(engine: EngineHost): Promise<void> {
  using progress = new Progress("loading");
  const timer = setInterval(() => progress.step(Math.round(engine.progress * 100), 100, "%"), 200);
  try {
    const facts = await engine.loaded;
    progress.clear();
    describe(facts);
  } finally {
    clearInterval(timer);
  }
}

function describe({ name, deviceName, deviceBytes, ...facts }: ModelFacts): void {
  const { contextTokens, cache, loadMs } = facts;
  note(
    `${name} on ${deviceName}: ${formatBytes(deviceBytes)} on the device, ` +
      `context ${contextTokens}, cache ${cache}, loaded in ${(loadMs / 1000).toFixed(2)} s`,
  );
}

/** What every load warns of is said the first time. */
function once(tell: (message: string) => void): (message: string) => void {
  const told = new Set<string>();
  return (message) => {
    if (!told.has(message)) tell(message);
    told.add(message);
  };
}

function signalled(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (stopSignal.aborted) resolve();
  stopSignal.addEventListener("abort", () => resolve(), { once: true });
  return promise;
}

/** What monitors ask all the time is not worth a line, unless it fails. */
const silentRoutes = ["/health", "/live", "/metrics", "page"];

function writeLog(entry: LogEntry, format: "text" | "json"): void {
  if (entry.status < 400 && silentRoutes.includes(entry.route)) return;
  if (format === "json") return note(JSON.stringify(entry));
  const { method, route, status, ms, promptTokens, tokens, firstTokenMs, error, id } = entry;
  const made = promptTokens === undefined ? "" : `, ${promptTokens} + ${tokens ?? 0} tokens`;
  const first = firstTokenMs === undefined ? "" : `, first after ${firstTokenMs} ms`;
  const failure = error === undefined ? "" : `, ${error}`;
  note(`${method} ${route} ${status} in ${ms} ms${made}${first}${failure} (${id})`);
}
