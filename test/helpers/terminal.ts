/** Runs of the executable in a terminal, with keys that are pressed when something has come. */
import { binary, ensureBuilt, environment, folder } from "./binary.ts";

export interface Session {
  /** What the terminal was sent. */
  readonly screen: string;
  readonly code: number;
}

export interface Keys {
  /** What the screen must show before they are pressed. */
  readonly after: RegExp;
  readonly keys: string;
}

/** Runs a line of the shell, in which $zinc is the executable, in a terminal of 80 columns. */
export async function session(
  line: string,
  env: Readonly<Record<string, string>> = {},
  typed: readonly Keys[] = [],
): Promise<Session> {
  ensureBuilt();
  let screen = "";
  const rest = [...typed];
  const decoder = new TextDecoder();
  const child = Bun.spawn(["/bin/sh", "-c", line], {
    cwd: folder,
    // What waits for a key that is never pressed.
    timeout: 120_000,
    killSignal: "SIGKILL",
    env: { ...environment, zinc: binary, TERM: "xterm", PATH: "/usr/bin:/bin", ...env },
    terminal: {
      cols: 80,
      rows: 24,
      data(terminal, data) {
        screen += decoder.decode(data, { stream: true });
        const [next] = rest;
        if (next === undefined || !next.after.test(screen)) return;
        rest.shift();
        terminal.write(next.keys);
      },
    },
  });
  const code = await child.exited;
  // The last bytes may still be on their way.
  await Bun.sleep(50);
  child.terminal?.close();
  return { screen: screen.replaceAll("\r\n", "\n"), code };
}
