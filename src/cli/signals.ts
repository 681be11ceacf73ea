/** Ctrl+C and termination: the first asks the work to stop, the second ends the program at once. */

let received: 130 | 143 | undefined;
const controller = new AbortController();

/** Aborted by the first signal. */
export const stopSignal: AbortSignal = controller.signal;

/** The exit code that a signal asks for, if one came. */
export function signalExitCode(): number | undefined {
  return received;
}

export function listenForSignals(): void {
  for (const [name, code] of [
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const) {
    process.on(name, () => {
      if (received !== undefined) process.exit(code);
      received = code;
      controller.abort();
    });
  }
}
