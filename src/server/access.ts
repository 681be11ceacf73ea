/**
 * Who may talk to the server: hosts and origins, so that a page of a stranger cannot use it through
 * its reader's browser, and keys.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { ApiError } from "./api-error.ts";

export interface AccessOptions {
  /** Requests without one of these are refused, if there are any. */
  readonly keys: readonly string[];
  /** Origins of other pages that may use the API; "*" is all. */
  readonly origins: readonly string[];
  /** The server listens to this machine alone: then requests name it so. */
  readonly isLoopback: boolean;
}

export class Access {
  readonly #keys: readonly Buffer[];
  readonly #origins: readonly string[];
  readonly #isLoopback: boolean;

  constructor({ keys, origins, isLoopback }: AccessOptions) {
    this.#keys = keys.map(digest);
    this.#origins = origins.map((origin) => origin.replace(/\/$/, "").toLowerCase());
    this.#isLoopback = isLoopback;
  }

  /** Throws a 403 for a name that is not ours, and for a page that is not. */
  checkPlace(request: Request): void {
    const host = request.headers.get("host") ?? "";
    if (this.#isLoopback && !isLoopbackName(nameOf(host))) {
      throw forbidden("host", "the Host header names another machine", "connect to localhost");
    }
    const origin = request.headers.get("origin");
    if (origin === null || this.#allows(origin) || isSameOrigin(origin, host)) return;
    throw forbidden("origin", "the request comes from another page", "allow its origin by --cors");
  }

  /** Throws a 401 without a good key; returns which one it was. */
  checkKey(request: Request): number | undefined {
    if (this.#keys.length === 0) return undefined;
    const { headers } = request;
    const bearer = /^Bearer\s+(.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
    const given = digest((bearer ?? headers.get("x-api-key") ?? "").trim());
    // All are compared, whichever matches.
    const matches = this.#keys.map((key) => timingSafeEqual(key, given));
    const found = matches.indexOf(true);
    if (found >= 0) return found;
    throw new ApiError(401, "authentication_error", "a valid API key is needed", {
      code: "invalid_api_key",
      headers: { "www-authenticate": "Bearer" },
    });
  }

  /** What lets a page of another origin read the response, if it may. */
  corsHeaders(request: Request): Readonly<Record<string, string>> {
    const origin = request.headers.get("origin");
    if (this.#origins.length === 0) return {};
    if (origin === null || !this.#allows(origin)) return { vary: "Origin" };
    return {
      "access-control-allow-origin": origin,
      "access-control-expose-headers": "x-request-id, retry-after",
      vary: "Origin",
    };
  }

  /** The answer to a browser that asks what it may send. */
  preflightHeaders(request: Request, methods: readonly string[]): Record<string, string> {
    const cors = this.corsHeaders(request);
    const allow = methods.join(", ");
    if (!("access-control-allow-origin" in cors)) return { ...cors, allow };
    const asked = request.headers.get("access-control-request-headers");
    return {
      ...cors,
      allow,
      "access-control-allow-methods": allow,
      "access-control-allow-headers": asked ?? "authorization, content-type, x-api-key",
      "access-control-max-age": "600",
    };
  }

  #allows(origin: string): boolean {
    return this.#origins.some((known) => known === "*" || known === origin.toLowerCase());
  }
}

/** Whether a name or address can only mean this machine. */
export function isLoopbackName(name: string): boolean {
  const plain = name.replace(/^\[|\]$/g, "").toLowerCase();
  return plain === "localhost" || plain.endsWith(".localhost") || isLoopbackAddress(plain);
}

function isLoopbackAddress(address: string): boolean {
  return address === "::1" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(address);
}

/** "[::1]:80" → "[::1]" */
function nameOf(host: string): string {
  return host.replace(/:\d*$/, "");
}

function isSameOrigin(origin: string, host: string): boolean {
  try {
    return new URL(origin).host === new URL(`http://${host}`).host;
  } catch {
    return false;
  }
}

/** Of one length, so that comparing takes the same time for all. */
function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

function forbidden(what: string, message: string, remedy: string): ApiError {
  const code = `forbidden_${what}`;
  return new ApiError(403, "permission_error", `${message}; ${remedy}`, { code });
}
