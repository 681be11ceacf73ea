/** What goes wrong between here and a server, in words: network errors and HTTP statuses. */
import { UserError } from "../errors.ts";
import { PassingFailure } from "./retry.ts";

const networkErrors: Readonly<Record<string, string>> = {
  ENOTFOUND: "no such host",
  EAI_AGAIN: "the name of the host cannot be looked up",
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was cut",
  EPROTO: "no secure connection can be made",
};

/** Network errors may pass, and are worth another try. */
export function explainNetwork(error: unknown, host: string): PassingFailure {
  if (error instanceof PassingFailure) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const what = networkErrors[code] ?? `the connection failed${code && ` (${code})`}`;
  return new PassingFailure(`${host}: ${what}`);
}

/** Lets 416 pass: it tells the size of a file. `shown` names what was asked for. */
export function requireSuccess(response: Response, shown: string, hasToken: boolean): void {
  const { status } = response;
  if (response.ok || status === 416) return;
  if (status === 429 || status === 408 || status >= 500) {
    const reason = status === 429 ? "too many requests" : "the server fails";
    throw new PassingFailure(`${reason} (${status})`, askedPause(response.headers));
  }
  if (status === 401 || status === 403) {
    const remedy = hasToken
      ? "check that the token is valid, and accept the model's terms on its page"
      : "check the name; for a gated or private model set HF_TOKEN, or give a --token-file";
    throw new UserError("failed", `${shown}: access is denied (${status})`, remedy);
  }
  if (status === 404 || status === 410) {
    throw new UserError("model", `${shown}: there is no such file (${status})`, "check the name");
  }
  throw new UserError("failed", `${shown}: the server refuses (${status})`, "check the address");
}

/** Seconds, or a date. */
function askedPause(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const pauseMs = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(pauseMs) ? Math.max(pauseMs, 0) : undefined;
}
