/** The built executable in a terminal, with somebody who types. */
import { binary, ensureBuilt, environment, folder } from "./binary.ts";

export interface Session {
  /** What the terminal was sent. */
  readonly screen: string;
  readonly code: number;
}

/** Keys that are pressed when the screen shows something behind what was typed last. */
export interface Step {
  readonly after: RegExp;
  readonly keys: string;
}

/** Who waits in vain for something to type sees what the screen shows instead. */
const patienceMs = 120_000;

/** Runs a line of the shell, in which $zinc is the executable, in a terminal of 80 columns. */
export async function session(
  line: string,
  env: Readonly<Record<string, string>> = {},
  steps: readonly Step[] = [],
): Promise<Session> {
  ensureBuilt();
  let screen = "";
  let seen = 0;
  const rest = [...steps];
  const decoder = new TextDecoder();
  const child = Bun.spawn(["/bin/sh", "-c", line], {
    cwd: folder,
    env: { ...environment, zinc: binary, TERM: "xterm", PATH: "/usr/bin:/bin", ...env },
    terminal: {
      cols: 80,
      rows: 24,
      data(terminal, data) {
        screen += decoder.decode(data, { stream: true });
        if (rest[0]?.after.test(screen.slice(seen)) !== true) return;
        seen = screen.length;
        terminal.write(rest.shift()?.keys ?? "");
      },
    },
  });
  const killer = setTimeout(() => child.kill("SIGKILL"), patienceMs);
  const code = await child.exited;
  clearTimeout(killer);
  // The last bytes may still be on their way.
  await Bun.sleep(50);
  child.terminal?.close();
  return { screen: screen.replaceAll("\r\n", "\n"), code };
}
