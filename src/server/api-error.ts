/** What a client is told when something cannot be done; each API spells it in its own way. */
import { InvariantError, UserError } from "../errors.ts";
import { Refusal } from "./problem.ts";
import type { Problem } from "./protocol.ts";
import type { OfferedModel } from "./shelf.ts";

export type ErrorType =
  | "invalid_request_error"
  | "authentication_error"
  | "permission_error"
  | "not_found_error"
  | "timeout_error"
  | "unavailable_error"
  | "server_error";

export interface ErrorDetails {
  readonly param?: string | undefined;
  readonly code?: string | undefined;
  /** More fields for programs. */
  readonly fields?: Readonly<Record<string, number | string>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly type: ErrorType;
  readonly details: ErrorDetails;

  constructor(status: number, type: ErrorType, message: string, details: ErrorDetails = {}) {
    super(message);
    this.status = status;
    this.type = type;
    this.details = details;
  }
}

export function invalid(message: string, param?: string, code?: string): ApiError {
  return new ApiError(400, "invalid_request_error", message, { param, code });
}

/** To be tried again after some seconds. */
function unavailable(message: string, code: string, retryAfterS: number): ApiError {
  return new ApiError(503, "unavailable_error", message, {
    code,
    headers: { "retry-after": String(retryAfterS) },
  });
}

export function overloaded(waitingCount: number): ApiError {
  const message = `the server is busy: ${waitingCount} requests are waiting already`;
  return unavailable(message, "overloaded", 2);
}

/** Why nothing is served, by the state of the engine. */
export function notReady(state: string): ApiError {
  if (state === "draining") return shuttingDown();
  if (state !== "device_lost") return unavailable("the model is still loading", "loading", 2);
  return unavailable("the device was lost, and the model is loaded again", "device_lost", 5);
}

export function shuttingDown(): ApiError {
  return unavailable("the server is shutting down", "draining", 5);
}

/** Trying again would take as long and end alike. Where a model lies is nobody else's business. */
export function cannotLoad({ id, path = "" }: OfferedModel, message: string): ApiError {
  const reason = message.replace(`${path}: `, "");
  return new ApiError(500, "server_error", `the model ${id} cannot be loaded: ${reason}`, {
    code: "model_not_loaded",
    headers: { "x-should-retry": "false" },
  });
}

/** An error of the engine's thread. */
export function fromProblem(problem: Problem): ApiError {
  const { kind, message, param, code, details } = problem;
  if (kind === "usage") {
    return new ApiError(400, "invalid_request_error", message, { param, code, fields: details });
  }
  const text = kind === "bug" ? `a bug in zinc: ${message}` : message;
  return new ApiError(500, "server_error", text, { code: code ?? "engine_error" });
}

/** Any thrown value. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof Refusal) return fromProblem(error.problem);
  if (error instanceof UserError && error.kind === "usage") return invalid(error.text);
  const bug = error instanceof InvariantError ? "a bug in zinc" : "unexpected";
  const message = error instanceof Error ? error.message : String(error);
  return new ApiError(500, "server_error", `${bug}: ${message}`, { code: "internal_error" });
}
