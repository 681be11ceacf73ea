/**
 * Writing to stdout and stderr: the answer to one, everything else to the other, and colour where
 * it belongs.
 */
import { writeSync } from "node:fs";
import { createConsola } from "consola";

/** Nobody reads stdout any more. The work is over, and that is no failure. */
export class ClosedOutput extends Error {
  override readonly name = "ClosedOutput";
}

let colorMode: "auto" | "always" | "never" = "auto";
let quiet = false;

export function setColor(mode: typeof colorMode): void {
  colorMode = mode;
}

export function setQuiet(on: boolean): void {
  quiet = on;
}

/** Each stream is judged by itself; a flag overrules the environment. */
export function colorize(stream: "stdout" | "stderr"): boolean {
  if (colorMode !== "auto") return colorMode === "always";
  const { NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM } = process.env;
  if (NO_COLOR) return false;
  if ((FORCE_COLOR && FORCE_COLOR !== "0") || (CLICOLOR_FORCE && CLICOLOR_FORCE !== "0"))
    return true;
  return process[stream].isTTY === true && TERM !== "dumb";
}

export function isInteractive(): boolean {
  return process.stderr.isTTY === true && !quiet;
}

/** Writes all of it before it returns, so that nothing is lost at exit. Throws `ClosedOutput`. */
export async function writeOut(text: string): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code === "EPIPE") throw new ClosedOutput();
      // A pipe that is full and does not block.
      if (code !== "EAGAIN") throw error;
      await Bun.sleep(2);
    }
  }
}

/** One line on stderr that is no warning: timings and the like. */
export function note(text: string): void {
  if (!quiet) process.stderr.write(`${text}\n`);
}

const logger = createConsola({ stdout: process.stderr, stderr: process.stderr });

/** Something seems wrong, and the work goes on. */
export function warn(message: string): void {
  if (!quiet) logger.warn(message);
}

export function printError(message: string): void {
  process.stderr.write(`${paint("zinc: ", "red")}${message}\n`);
}

const codes = { red: 31, green: 32, yellow: 33, blue: 34, bold: 1, dim: 2 } as const;

export function paint(
  text: string,
  color: keyof typeof codes,
  stream: "stdout" | "stderr" = "stderr",
): string {
  return colorize(stream) ? `\u001b[${codes[color]}m${text}\u001b[0m` : text;
}
