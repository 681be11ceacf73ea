/**
 * The two kinds of failure: `UserError` for what the world can do to us, `invariant` for our own
 * bugs. Nothing here prints or exits; only `cli.ts` turns an error into text and an exit code.
 */

/** Why a command failed; decides the exit code (see `exitCodes`). */
export type ErrorKind = "failed" | "usage" | "model" | "device" | "memory";

/** Exit codes of the command line, by kind of error. */
export const exitCodes = {
  failed: 1,
  usage: 2,
  model: 3,
  device: 4,
  memory: 5,
} as const satisfies Record<ErrorKind, number>;

/**
 * Something outside the program is not as it must be. The message is one line that names the
 * subject and the value; `remedy` says what to do about it.
 */
export class UserError extends Error {
  override readonly name = "UserError";
  readonly kind: ErrorKind;
  readonly remedy: string | undefined;

  constructor(kind: ErrorKind, message: string, remedy?: string, options?: ErrorOptions) {
    super(oneLine(message), options);
    this.kind = kind;
    this.remedy = remedy === undefined ? undefined : oneLine(remedy);
  }

  /** The whole line a person sees. */
  get text(): string {
    return this.remedy === undefined ? this.message : `${this.message}; ${this.remedy}`;
  }
}

/** A broken promise between our own parts: always a bug in zinc, never the user's doing. */
export class InvariantError extends Error {
  override readonly name = "InvariantError";
}

/** Throws `InvariantError` unless `condition` holds. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/**
 * Messages quote file names and metadata, which may hold control characters: keep them on one line.
 */
export function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/gu, (c) =>
    c === "\n" ? "\\n" : `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}
