/**
 * Ctrl+C and termination. They end the program at once, unless the work at hand can stop halfway:
 * then the first asks it to, and the second ends the program.
 */
import { clearLine } from "./output.ts";

let received: 130 | 143 | undefined;
let stopsGently = false;
const controller = new AbortController();

/** Aborted by the first signal after `stopGently`. */
export const stopSignal: AbortSignal = controller.signal;

/** The exit code that a signal asks for, if one came. */
export function signalExitCode(): number | undefined {
  return received;
}

/** The work at hand, if Ctrl+C is to end it and nothing else. */
let caught: AbortController | undefined;

/**
 * Work that the first Ctrl+C ends, and not the program: its signal is aborted. The second in a row
 * ends the program, unless the work is done and `release` was called.
 */
export function catchInterrupt(): { readonly signal: AbortSignal; release(): void } {
  const work = new AbortController();
  caught = work;
  return {
    signal: work.signal,
    release() {
      if (caught === work) caught = undefined;
    },
  };
}

/** From now on the work looks at `stopSignal` or `signalExitCode`, and ends by itself. */
export function stopGently(): void {
  stopsGently = true;
}

export function listenForSignals(): void {
  for (const [name, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.on(name, () => {
      if (name === "SIGINT" && caught?.signal.aborted === false) return caught.abort();
      if (!stopsGently || received !== undefined) {
        clearLine();
        process.exit(code);
      }
      received = code;
      controller.abort();
    });
  }
}
