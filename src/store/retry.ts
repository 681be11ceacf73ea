/** Trying again what a network or a busy server made fail, with growing pauses in between. */
import { UserError } from "../errors.ts";

export interface RetryTiming {
  /** Failures in a row, without a byte of progress, after which it is given up. */
  readonly attempts: number;
  readonly firstPauseMs: number;
  readonly pauseMsMax: number;
  /** A server that asks to wait longer than this is not waited for. */
  readonly askedPauseMsMax: number;
  /** Silence after which a connection counts as lost. */
  readonly silenceMs: number;
}

/** Together more than a minute: longer than a router needs to restart. */
export const usualTiming: RetryTiming = {
  attempts: 8,
  firstPauseMs: 500,
  pauseMsMax: 30_000,
  askedPauseMsMax: 120_000,
  silenceMs: 30_000,
};

export interface RetryOptions {
  readonly timing: RetryTiming;
  readonly signal: AbortSignal;
  /** Told before every pause. */
  readonly onPause: (reason: string, pauseMs: number) => void;
}

/** Before anything has come: a name that is wrong or a network that is off should be told soon. */
const firstAttempts = 4;

/** For the first questions to a server. */
export function impatient<T extends RetryOptions>(options: T): T {
  const attempts = Math.min(options.timing.attempts, firstAttempts);
  return { ...options, timing: { ...options.timing, attempts } };
}

/** May go well another time: a lost connection, a server that is busy or asks to wait. */
export class PassingFailure extends Error {
  override readonly name = "PassingFailure";
  /** What the server asked for. */
  readonly askedPauseMs: number | undefined;

  constructor(message: string, askedPauseMs?: number) {
    super(message);
    this.askedPauseMs = askedPauseMs;
  }
}

/** Counts the failures of one piece of work. */
export class Retry {
  readonly #subject: string;
  readonly #options: RetryOptions;
  #failures = 0;

  /** `subject` is what the error names if it is given up. */
  constructor(subject: string, options: RetryOptions) {
    this.#subject = subject;
    this.#options = options;
  }

  /** Something has come: patience starts anew. */
  progress(): void {
    this.#failures = 0;
  }

  /** Waits before the next attempt; throws what will not pass, and a "failed" error in the end. */
  async pause(error: unknown): Promise<void> {
    const { timing, signal, onPause } = this.#options;
    signal.throwIfAborted();
    if (!(error instanceof PassingFailure)) throw error;
    this.#failures++;
    const asked = error.askedPauseMs ?? 0;
    if (this.#failures >= timing.attempts || asked > timing.askedPauseMsMax) {
      throw givenUp(this.#subject, error, asked);
    }
    const grown = Math.min(timing.firstPauseMs * 2 ** (this.#failures - 1), timing.pauseMsMax);
    // Connections that were cut together should not come back together.
    const pauseMs = Math.max(asked, grown * (0.75 + Math.random() / 2));
    onPause(error.message, pauseMs);
    await sleep(pauseMs, signal);
  }
}

function givenUp(subject: string, error: PassingFailure, askedPauseMs: number): UserError {
  const when =
    askedPauseMs > 0
      ? `the server asks to wait ${Math.ceil(askedPauseMs / 1000)} s`
      : "check the connection";
  const remedy = `${when}; the same command goes on where this one ended`;
  return new UserError("failed", `${subject}: ${error.message}`, remedy, { cause: error });
}

/** Ends early, by throwing, when the signal comes. */
export function sleep(pauseMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, pauseMs);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    signal.addEventListener("abort", stop, { once: true });
  });
}
