/** Which endpoint answers which path. */
import { ApiError, type ErrorType } from "./api-error.ts";
import { anthropicError, countTokens, messages } from "./api/anthropic.ts";
import { chatCompletions } from "./api/chat-completions.ts";
import { completions } from "./api/completions.ts";
import { embeddings } from "./api/embeddings.ts";
import {
  ollamaChat,
  ollamaEmbed,
  ollamaError,
  ollamaGenerate,
  ollamaPs,
  ollamaShow,
  ollamaTags,
  ollamaVersion,
} from "./api/ollama.ts";
import { openaiError } from "./api/openai-shape.ts";
import { responses } from "./api/responses.ts";
import { health, live, metrics, model, models, props } from "./api/status.ts";
import { applyTemplate, detokenize, tokenize } from "./api/tokens.ts";
import type { Exchange } from "./exchange.ts";

/** Gets the body, as JSON, for POST. */
export type Endpoint = (exchange: Exchange, body: unknown) => Response | Promise<Response>;

export interface Route {
  /** A path, or the beginning of one that ends in "/". */
  readonly path: string;
  readonly methods: Readonly<Partial<Record<"GET" | "POST" | "DELETE", Endpoint>>>;
  /** How its errors look; OpenAI's way by default. */
  readonly errorBody?: (error: ApiError, exchange: Exchange) => unknown;
  /** Needs no key. */
  readonly isPublic?: true;
}

export const routes: readonly Route[] = [
  { path: "/live", methods: { GET: live }, isPublic: true },
  { path: "/health", methods: { GET: health }, isPublic: true },
  { path: "/metrics", methods: { GET: metrics } },
  { path: "/props", methods: { GET: props } },
  { path: "/tokenize", methods: { POST: tokenize } },
  { path: "/detokenize", methods: { POST: detokenize } },
  { path: "/apply-template", methods: { POST: applyTemplate } },
  { path: "/v1/models", methods: { GET: models } },
  { path: "/v1/models/", methods: { GET: model } },
  { path: "/v1/chat/completions", methods: { POST: chatCompletions } },
  { path: "/v1/completions", methods: { POST: completions } },
  { path: "/v1/responses", methods: { POST: responses } },
  { path: "/v1/embeddings", methods: { POST: embeddings } },
  { path: "/v1/messages", methods: { POST: messages }, errorBody: anthropicError },
  { path: "/v1/messages/count_tokens", methods: { POST: countTokens }, errorBody: anthropicError },
  ...ollama({
    "/api/chat": { POST: ollamaChat },
    "/api/generate": { POST: ollamaGenerate },
    "/api/embed": { POST: ollamaEmbed },
    "/api/tags": { GET: ollamaTags },
    "/api/ps": { GET: ollamaPs },
    "/api/show": { POST: ollamaShow },
    "/api/version": { GET: ollamaVersion },
  }),
];

function ollama(paths: Readonly<Record<string, Route["methods"]>>): Route[] {
  return Object.entries(paths).map(([path, methods]) => ({
    path,
    methods,
    errorBody: ollamaError,
  }));
}

/** Doubled slashes, and one at the end, count for nothing. */
export function findRoute(pathname: string, table: readonly Route[]): Route | undefined {
  const path = pathname.replace(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  return table.find((route) =>
    route.path.endsWith("/") && route.path !== "/"
      ? path.startsWith(route.path)
      : path === route.path,
  );
}

export function errorResponse(
  error: ApiError,
  exchange: Exchange,
  errorBody: Route["errorBody"] = openaiError,
): Response {
  const { status, details } = error;
  return Response.json(errorBody(error, exchange), { status, headers: { ...details.headers } });
}

export function notFound(): ApiError {
  return new ApiError(404, "not_found_error", "there is nothing at this path", {
    code: "not_found",
  });
}

export function wrongMethod(method: string, allowed: readonly string[]): ApiError {
  const type: ErrorType = "invalid_request_error";
  return new ApiError(405, type, `${method} is not possible here`, {
    code: "method_not_allowed",
    headers: { allow: allowed.join(", ") },
  });
}
