/** The server as the page sees it: OpenAI's chat completions, streamed, and what surrounds them. */
import { EventSourceParserStream } from "eventsource-parser/stream";
import { isRecord, parseJson } from "./archive.ts";

/** What arrives while an answer is made, in the order in which it came. */
export type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "reasoning"; readonly text: string }
  | {
      readonly kind: "tool";
      readonly index: number;
      readonly id: string;
      readonly name: string;
      readonly arguments: string;
    }
  | { readonly kind: "model"; readonly id: string }
  | { readonly kind: "finish"; readonly reason: string }
  | { readonly kind: "usage"; readonly promptTokens: number; readonly tokens: number }
  | { readonly kind: "speed"; readonly tokensPerSecond: number };

/** An answer that is no success; the message is the server's own. */
export class ApiError extends Error {
  /** Of HTTP; 0 if the server was not reached or broke off. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const unreachable = "The server does not answer. Is zinc still running?";
const brokenOff = "The connection ended before the answer did.";

/** Throws an ApiError, or the signal's AbortError. */
export async function* streamChat(
  body: unknown,
  apiKey: string,
  signal: AbortSignal,
): AsyncGenerator<Piece> {
  const response = await request("/v1/chat/completions", apiKey, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
  if (!response.ok) throw await errorOf(response);
  if (response.body === null) throw new ApiError(0, brokenOff);
  const events = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())
    .getReader();
  let isFinished = false;
  for (;;) {
    const { value: event } = await events.read().catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw new ApiError(0, brokenOff);
    });
    if (event === undefined) break;
    if (event.data === "[DONE]") return;
    for (const piece of piecesOf(event.data)) {
      if (piece.kind === "finish") isFinished = true;
      yield piece;
    }
  }
  if (!isFinished) throw new ApiError(0, brokenOff);
}

/** What one event of the stream says. Throws an ApiError if it is one. */
export function piecesOf(data: string): Piece[] {
  const chunk = parseJson(data);
  if (!isRecord(chunk)) return [];
  if (chunk["error"] !== undefined) throw new ApiError(0, errorText(chunk) ?? "unknown error");
  const pieces: Piece[] = [];
  const choice: unknown = Array.isArray(chunk["choices"]) ? chunk["choices"][0] : undefined;
  if (isRecord(choice)) {
    // Told in every chunk; once is enough.
    const isFirst = isRecord(choice["delta"]) && choice["delta"]["role"] !== undefined;
    if (isFirst) pieces.push({ kind: "model", id: stringOf(chunk["model"]) });
    if (isRecord(choice["delta"])) pieces.push(...piecesOfDelta(choice["delta"]));
    const reason = choice["finish_reason"];
    if (typeof reason === "string") pieces.push({ kind: "finish", reason });
  }
  const { usage, timings } = chunk;
  if (isRecord(usage)) {
    const promptTokens = numberOf(usage["prompt_tokens"]);
    pieces.push({ kind: "usage", promptTokens, tokens: numberOf(usage["completion_tokens"]) });
  }
  const speed = isRecord(timings) ? numberOf(timings["predicted_per_second"]) : 0;
  if (speed > 0) pieces.push({ kind: "speed", tokensPerSecond: speed });
  return pieces;
}

function piecesOfDelta(delta: Record<string, unknown>): Piece[] {
  const pieces: Piece[] = [];
  const { content, reasoning_content: reasoning, tool_calls: calls } = delta;
  if (typeof reasoning === "string" && reasoning !== "") {
    pieces.push({ kind: "reasoning", text: reasoning });
  }
  if (typeof content === "string" && content !== "") pieces.push({ kind: "text", text: content });
  for (const call of Array.isArray(calls) ? calls : []) {
    if (!isRecord(call)) continue;
    const fn = isRecord(call["function"]) ? call["function"] : {};
    pieces.push({
      kind: "tool",
      index: numberOf(call["index"]),
      id: stringOf(call["id"]),
      name: stringOf(fn["name"]),
      arguments: stringOf(fn["arguments"]),
    });
  }
  return pieces;
}

/** JSON of a GET, whatever its status; undefined if the server was not reached. */
export async function getJson(
  path: string,
  apiKey: string,
): Promise<{ status: number; json: unknown } | undefined> {
  try {
    const response = await request(path, apiKey, { signal: AbortSignal.timeout(10_000) });
    return { status: response.status, json: parseJson(await response.text()) };
  } catch {
    return undefined;
  }
}

/** Text of a GET; undefined if there is none. */
export async function getText(path: string, apiKey: string): Promise<string | undefined> {
  try {
    const response = await request(path, apiKey, { signal: AbortSignal.timeout(10_000) });
    return response.ok ? await response.text() : undefined;
  } catch {
    return undefined;
  }
}

/** Lets the server load a model; ends when it has. Throws an ApiError if it cannot. */
export async function loadModel(model: string, apiKey: string): Promise<void> {
  const response = await request("/api/chat", apiKey, {
    method: "POST",
    headers: { "content-type": "application/json" },
    // A conversation without messages asks for no answer.
    body: JSON.stringify({ model, messages: [], stream: false }),
  });
  if (!response.ok) throw await errorOf(response);
}

async function request(path: string, apiKey: string, init: RequestInit): Promise<Response> {
  const headers = new Headers(init.headers);
  if (apiKey !== "") headers.set("authorization", `Bearer ${apiKey}`);
  try {
    return await fetch(path, { ...init, headers, cache: "no-store" });
  } catch (error) {
    if (init.signal?.aborted === true) throw error;
    throw new ApiError(0, unreachable);
  }
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  const json = parseJson(text);
  const said = isRecord(json) ? errorText(json) : undefined;
  return new ApiError(response.status, said ?? `The server answered ${response.status}.`);
}

function errorText(json: Record<string, unknown>): string | undefined {
  const { error } = json;
  if (typeof error === "string") return error;
  return isRecord(error) && typeof error["message"] === "string" ? error["message"] : undefined;
}

function numberOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
