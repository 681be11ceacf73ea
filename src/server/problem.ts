/** Errors that cross from the engine's thread to that of HTTP. */
import { BadShape } from "../chat/shape/answer-shape.ts";
import { UserError } from "../errors.ts";
import type { Problem } from "./protocol.ts";

/** What was asked for cannot be done. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** The fields that shapes come from. */
const shapeFields = {
  json: "response_format",
  schema: "response_format",
  grammar: "grammar",
  call: "tools",
} as const;

/** Any thrown value as something that can be sent. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Refusal) return error.problem;
  if (error instanceof BadShape) {
    const { message, code, shape } = error;
    return { kind: "usage", message, code, param: shapeFields[shape] };
  }
  if (error instanceof UserError) return { kind: error.kind, message: error.text };
  return { kind: "bug", message: error instanceof Error ? error.message : String(error) };
}
