/** One HTTP exchange: what is asked, where redirects lead, and the answer as it comes. */
import { UserError } from "../errors.ts";
import { explainNetwork, requireSuccess } from "./http-failure.ts";
import { PassingFailure, type RetryTiming } from "./retry.ts";

/** What a server may be told about the user. */
export interface Access {
  readonly token?: string | undefined;
  /** The token goes to these origins alone, whatever redirects say. */
  readonly origins: readonly string[];
}

/** Bytes of a file, up to and without `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

const redirectsMax = 10;

export class Exchange implements Disposable {
  readonly #asked: string;
  readonly #access: Access;
  readonly #outer: AbortSignal;
  readonly #silenceMs: number;
  readonly #controller = new AbortController();
  readonly #stop = () => this.#controller.abort(this.#outer.reason);
  readonly #headers = new Headers();
  #response: Response | undefined;
  #address: string;
  #timer: NodeJS.Timeout | undefined;
  #isSilent = false;

  private constructor(url: string, access: Access, signal: AbortSignal, timing: RetryTiming) {
    this.#asked = url;
    this.#address = url;
    this.#access = access;
    this.#outer = signal;
    this.#silenceMs = timing.silenceMs;
    signal.throwIfAborted();
    signal.addEventListener("abort", this.#stop, { once: true });
  }

  /**
   * Asks for some bytes, or for all without a range. Throws `PassingFailure`, or a `UserError` for
   * what will not pass. Dispose of it: that ends what is left of the answer.
   */
  static async open(
    url: string,
    range: ByteRange | undefined,
    access: Access,
    { signal, timing }: { readonly signal: AbortSignal; readonly timing: RetryTiming },
  ): Promise<Exchange> {
    using opened = new DisposableStack();
    const exchange = opened.use(new Exchange(url, access, signal, timing));
    await exchange.#ask(range);
    opened.move();
    return exchange;
  }

  /** 200, 206 or 416. */
  get status(): number {
    return this.#response?.status ?? 0;
  }

  /** Those of the answer, and what the hub said of the file on the way to it. */
  get headers(): Headers {
    return this.#headers;
  }

  /** The body as it comes. Throws `PassingFailure` if it is cut, or nothing comes for too long. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    const body = this.#response?.body;
    if (!body) return;
    try {
      this.#listen();
      for await (const chunk of body) {
        // While the chunk is written to the disk, nobody waits for the server.
        clearTimeout(this.#timer);
        yield chunk;
        this.#listen();
      }
    } catch (error) {
      throw this.#explain(error);
    } finally {
      clearTimeout(this.#timer);
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener("abort", this.#stop);
    this.#controller.abort();
  }

  async #ask(range: ByteRange | undefined): Promise<void> {
    const shown = withoutSecrets(this.#asked);
    for (let hop = 0; hop <= redirectsMax; hop++) {
      const response = await this.#fetch(range);
      const location = response.headers.get("location");
      const isLast = response.status < 300 || response.status >= 400 || location === null;
      for (const [name, value] of response.headers) {
        // What the hub knows of a file stands in its redirect to where the file lies.
        if (isLast || name.startsWith("x-linked-")) this.#headers.set(name, value);
      }
      if (isLast) {
        requireSuccess(response, shown, this.#access.token !== undefined);
        this.#response = response;
        return;
      }
      await response.body?.cancel();
      this.#address = nextAddress(location, this.#address, shown);
    }
    throw new UserError("failed", `${shown} redirects in circles`, "check the address");
  }

  async #fetch(range: ByteRange | undefined): Promise<Response> {
    // Compressed, neither length nor ranges would mean the file.
    const headers = new Headers({ "accept-encoding": "identity", "user-agent": "zinc" });
    if (range !== undefined) headers.set("range", `bytes=${range.start}-${range.end - 1}`);
    const { token, origins } = this.#access;
    if (token !== undefined && mayHear(this.#address, origins)) {
      headers.set("authorization", `Bearer ${token}`);
    }
    try {
      this.#listen();
      const { signal } = this.#controller;
      return await fetch(this.#address, { headers, signal, redirect: "manual" });
    } catch (error) {
      throw this.#explain(error);
    } finally {
      clearTimeout(this.#timer);
    }
  }

  /** Starts to wait for the server. */
  #listen(): void {
    this.#timer = setTimeout(() => {
      this.#isSilent = true;
      this.#controller.abort();
    }, this.#silenceMs);
  }

  #explain(error: unknown): unknown {
    if (this.#outer.aborted) return this.#outer.reason;
    const { host } = new URL(this.#address);
    if (!this.#isSilent) return explainNetwork(error, host);
    return new PassingFailure(`${host}: nothing came for ${this.#silenceMs / 1000} s`);
  }
}

/** In clear text a token is safe on this machine alone. */
function mayHear(address: string, origins: readonly string[]): boolean {
  const { origin, protocol, hostname } = new URL(address);
  const isPrivate = protocol === "https:" || /^(localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
  return isPrivate && origins.includes(origin);
}

function nextAddress(location: string, from: string, shown: string): string {
  const next = URL.parse(location, from);
  const isSafe = next?.protocol === "https:" || next?.protocol === new URL(from).protocol;
  if (next !== null && isSafe) return next.href;
  const remedy = "check the address, or report it to whoever runs the server";
  throw new UserError("failed", `${shown} redirects to where zinc does not follow`, remedy);
}

/** Queries may sign an address: they are left out wherever one is shown or kept. */
export function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
