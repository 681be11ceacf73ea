/** What an answer must look like, and the error for what it cannot be held to. */
import { UserError } from "../../errors.ts";
import type { CallableTool } from "./forced-call.ts";

export type AnswerShape =
  /** Any object. */
  | { readonly type: "json" }
  | { readonly type: "schema"; readonly schema: unknown }
  /** In GBNF. */
  | { readonly type: "grammar"; readonly grammar: string }
  /** A call of one of these tools. */
  | { readonly type: "call"; readonly tools: readonly CallableTool[] };

/** What a user may ask for. */
export type AnswerFormat = Exclude<AnswerShape, { readonly type: "call" }>;

export class BadShape extends UserError {
  /** What it is about. */
  readonly shape: AnswerShape["type"];
  /** For programs. */
  readonly code: string;

  constructor(message: string, shape: AnswerShape["type"], code = "unsupported_schema") {
    super("usage", message);
    this.shape = shape;
    this.code = code;
  }
}
