/**
 * The one error that templates cause. It says whose doing it was; it never carries a stack to a
 * person.
 */

/**
 * Why a template gave no text: it is not a template ("parse"), it did something that Jinja refuses
 * ("runtime"), it called `raise_exception` to refuse these messages ("raised": the client's
 * mistake, and the message is the template's own), or it wanted too much time, memory or depth
 * ("limit").
 */
export type TemplateErrorKind = "parse" | "runtime" | "raised" | "limit";

/** A template that could not be parsed or rendered. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
  readonly kind: TemplateErrorKind;
  /** The line of the template, from 1, where known; the Jinja package does not tell. */
  readonly line: number | undefined;

  constructor(kind: TemplateErrorKind, message: string, line?: number) {
    super(message);
    this.kind = kind;
    this.line = line;
  }
}

/** What Python would raise as TypeError, ValueError, UndefinedError and the like. */
export function runtimeError(message: string): TemplateError {
  return new TemplateError("runtime", message);
}

/** A template that asked for more than it may have. */
export function limitError(message: string): TemplateError {
  return new TemplateError("limit", message);
}

/**
 * Runs `work`, turning the engine's own refusals (a stack too deep, a string or an integer too
 * long) into limit errors. Anything else that is not a `TemplateError` is our bug and passes
 * through.
 */
export function guarded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw limitError("the template nests too deeply or grows too large");
  }
}
