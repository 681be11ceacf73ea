/** HTTP: from a socket to an endpoint and back, and an end that leaves nobody hanging. */
import { UserError } from "../errors.ts";
import { Access, isLoopbackName, type AccessOptions } from "./access.ts";
import { toApiError } from "./api-error.ts";
import { readJson } from "./body.ts";
import { ClientGone, Exchange, type LogEntry } from "./exchange.ts";
import {
  errorResponse,
  findRoute,
  notFound,
  routes,
  wrongMethod,
  type Endpoint,
  type Route,
} from "./routes.ts";
import type { Service } from "./service.ts";

export interface ServerOptions {
  readonly hostname: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly access: Omit<AccessOptions, "isLoopback">;
  readonly log: (entry: LogEntry) => void;
  /** The page and its parts; undefined for other paths. */
  readonly page?: ((request: Request) => Response | undefined) | undefined;
}

/** For pages that bring no policy of their own: nothing from elsewhere, inline or in a frame. */
const pageHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
} as const;

/** How long a response may take behind the end of its making. */
const graceMs = 1000;

/** A body that is larger than any limit of ours is cut off by Bun, without a word. */
const socketBodyBytesMax = 2 ** 32;

export class Server {
  readonly #service: Service;
  readonly #options: ServerOptions;
  readonly #access: Access;
  readonly #http: Bun.Server<undefined>;
  readonly #routes: readonly Route[];
  /** Requests whose responses are not complete. */
  #openCount = 0;

  /** Listens at once. Throws a "failed" error if it cannot. */
  constructor(service: Service, options: ServerOptions) {
    this.#service = service;
    this.#options = options;
    const { hostname, port, access } = options;
    this.#access = new Access({ ...access, isLoopback: isLoopbackName(hostname) });
    this.#routes = service.options.testHooks ? [...routes, calamityRoute] : routes;
    try {
      this.#http = Bun.serve({
        hostname,
        port,
        maxRequestBodySize: socketBodyBytesMax,
        fetch: (request, server) => this.#answer(request, server),
        error: (error) => Response.json({ error: { message: error.name } }, { status: 500 }),
      });
    } catch (error) {
      throw cannotListen(hostname, port, error);
    }
  }

  get url(): string {
    return this.#http.url.href;
  }

  /** Takes no more requests, waits for those there are, and ends. */
  async drain(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs + graceMs;
    await this.#service.host.drain(timeoutMs);
    // What was made last is on its way to the client.
    while (this.#openCount > 0 && performance.now() < end) await Bun.sleep(10);
    this.#service.host.close();
    await Promise.race([this.#http.stop(false), Bun.sleep(graceMs)]);
    await this.#http.stop(true);
  }

  /** Ends now; of no effect if it has ended. */
  async close(): Promise<void> {
    this.#service.host.close();
    await this.#http.stop(true);
  }

  async #answer(request: Request, server: Bun.Server<undefined>): Promise<Response> {
    const { pathname } = new URL(request.url);
    const route = findRoute(pathname, this.#routes);
    this.#openCount++;
    const exchange = new Exchange({
      service: this.#service,
      request,
      client: server.requestIP(request)?.address ?? "unknown",
      route: route?.path ?? "unknown",
      log: (entry) => {
        this.#openCount--;
        this.#options.log(entry);
      },
    });
    const response = await this.#respond(exchange, pathname, route, server);
    const { headers } = response;
    for (const [name, value] of Object.entries(this.#access.corsHeaders(request))) {
      headers.set(name, value);
    }
    // OpenAI's clients look for one, Anthropic's for the other.
    headers.set("x-request-id", exchange.id);
    headers.set("request-id", exchange.id);
    headers.set("x-content-type-options", "nosniff");
    return response;
  }

  async #respond(
    exchange: Exchange,
    pathname: string,
    route: Route | undefined,
    server: Bun.Server<undefined>,
  ): Promise<Response> {
    try {
      this.#access.checkPlace(exchange.request);
      const page = route === undefined ? this.#pageOf(exchange.request, pathname) : undefined;
      if (page !== undefined) exchange.route = "page";
      const response = page ?? (await this.#serve(exchange, route, server));
      if (!exchange.isStreaming) exchange.finish(response.status);
      return response;
    } catch (error) {
      if (error instanceof ClientGone || exchange.isGone) {
        exchange.finish(0, new ClientGone());
        return new Response(null, { status: 408 });
      }
      const shown = toApiError(error);
      exchange.finish(shown.status, shown);
      return errorResponse(shown, exchange, route?.errorBody);
    }
  }

  async #serve(
    exchange: Exchange,
    route: Route | undefined,
    server: Bun.Server<undefined>,
  ): Promise<Response> {
    const { request } = exchange;
    if (route === undefined) throw notFound();
    const allowed = [...Object.keys(route.methods), "OPTIONS"];
    if ("GET" in route.methods) allowed.push("HEAD");
    if (request.method === "OPTIONS") {
      const headers = this.#access.preflightHeaders(request, allowed);
      return new Response(null, { status: 204, headers });
    }
    if (route.isPublic !== true) exchange.useKey(this.#access.checkKey(request));
    const method = request.method === "HEAD" ? "GET" : request.method;
    const methods: Readonly<Record<string, Endpoint | undefined>> = route.methods;
    const endpoint = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (endpoint === undefined) throw wrongMethod(request.method, allowed);
    if (method !== "POST") return endpoint(exchange, undefined);
    const body = await readJson(request, this.#service.bodyBytesMax);
    // From here on silence is ours: the engine takes its time.
    server.timeout(request, 0);
    return endpoint(exchange, body);
  }

  #pageOf(request: Request, pathname: string): Response | undefined {
    if (request.method !== "GET" && request.method !== "HEAD") return undefined;
    const isRoot = pathname === "/";
    const found =
      this.#options.page?.(request) ??
      (isRoot ? new Response("zinc is running; its API is at /v1\n") : undefined);
    for (const [name, value] of Object.entries(pageHeaders)) {
      if (found?.headers.has(name) === false) found.headers.set(name, value);
    }
    return found;
  }
}

/** With `ZINC_TEST_HOOKS=1` alone. */
const calamityRoute: Route = {
  path: "/test/calamity",
  methods: {
    POST({ service }, body) {
      const { kind } = body as { kind: "device-lost" | "crash" | "kill" };
      service.host.suffer(kind);
      return Response.json({ ok: true });
    },
  },
};

function cannotListen(hostname: string, port: number, cause: unknown): UserError {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const place = `${hostname}:${port}`;
  const reasons: Readonly<Record<string, [string, string]>> = {
    EADDRINUSE: ["another program listens there", "choose another --port"],
    EACCES: ["this port needs root", "choose a --port above 1023"],
    EADDRNOTAVAIL: ["this machine has no such address", "correct --host"],
    ENOTFOUND: ["no such host", "correct --host"],
  };
  const [reason, remedy] = reasons[code] ?? [String(cause), "correct --host and --port"];
  return new UserError("failed", `cannot listen on ${place}: ${reason}`, remedy, { cause });
}
