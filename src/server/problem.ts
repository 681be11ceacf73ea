/** Errors that cross from the engine's thread to that of HTTP. */
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

/** Any thrown value as something that can be sent. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Refusal) return error.problem;
  if (error instanceof UserError) return { kind: error.kind, message: error.text };
  return { kind: "bug", message: error instanceof Error ? error.message : String(error) };
}
