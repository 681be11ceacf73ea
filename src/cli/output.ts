/**
 * Writing to stdout and stderr: the answer to one, everything else to the other, and colour where
 * it belongs.
 */
import { writeSync } from "node:fs";
import { createConsola } from "consola/core";
import { oneLine, UserError } from "../errors.ts";

/** Nobody reads stdout any more. The work is over, and that is no failure. */
export class ClosedOutput extends Error {
  override readonly name = "ClosedOutput";
}

export type ColorMode = "auto" | "always" | "never";

let colorMode: ColorMode = "auto";
let quiet = false;

export function setColor(mode: ColorMode): void {
  colorMode = mode;
}

export function setQuiet(on: boolean): void {
  quiet = on;
}

export function isQuiet(): boolean {
  return quiet;
}

/** Each stream is judged by itself. */
export function colorize(stream: "stdout" | "stderr"): boolean {
  return wantsColor(colorMode, process.env, process[stream].isTTY === true);
}

/** A flag overrules the environment, and that the terminal. */
export function wantsColor(
  mode: ColorMode,
  env: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean {
  if (mode !== "auto") return mode === "always";
  const { NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, TERM } = env;
  if (NO_COLOR) return false;
  const isForced = [FORCE_COLOR, CLICOLOR_FORCE].some((value) => value && value !== "0");
  return isForced || (isTerminal && TERM !== "dumb");
}

/** Whether a line on stderr can be drawn over. */
export function isInteractive(): boolean {
  return process.stderr.isTTY === true && process.env["TERM"] !== "dumb" && !quiet;
}

/** Removes what stands on the line of a progress bar. */
export function clearLine(): void {
  if (isInteractive()) writeErr("\r\u001b[K");
}

/**
 * Writes all of it before it returns, so that nothing is lost at exit. Throws `ClosedOutput` if
 * nobody reads it, and a "failed" error if it cannot be written.
 */
export async function writeOut(text: string): Promise<void> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(1, bytes, at);
    } catch (error) {
      const code = errorCode(error);
      if (code === "EPIPE") throw new ClosedOutput();
      // A pipe that is full and does not block.
      if (code !== "EAGAIN") throw unwritable(code, error);
      await Bun.sleep(2);
    }
  }
}

function unwritable(code: string, cause: unknown): UserError {
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  const remedy = isFull ? "free some space on the disk" : "check where it leads";
  return new UserError("failed", `stdout cannot be written (${code})`, remedy, { cause });
}

/** Writes all of it before it returns. That nobody reads it is no failure. */
export function writeErr(text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(2, bytes, at);
    } catch (error) {
      if (errorCode(error) !== "EAGAIN") return;
      Bun.sleepSync(2);
    }
  }
}

/** The system's name of an error, such as "ENOENT". */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

/** One line on stderr that is no warning: timings and the like. */
export function note(text: string): void {
  if (!quiet) writeErr(`${oneLine(text)}\n`);
}

/** Prints a line as compilers do, with nothing around it. */
const logger = createConsola({
  reporters: [
    { log: ({ args }) => writeErr(`${paint("zinc: warning: ", "yellow")}${args.join(" ")}\n`) },
  ],
});

/** Something seems wrong, and the work goes on. */
export function warn(message: string): void {
  if (!quiet) logger.warn(oneLine(message));
}

export function printError(message: string): void {
  writeErr(`${paint("zinc: ", "red")}${message}\n`);
}

const codes = {
  red: "31",
  green: "32",
  yellow: "33",
  blue: "34",
  cyan: "36",
  bold: "1",
  dim: "2",
  title: "1;4",
} as const;

export function paint(
  text: string,
  color: keyof typeof codes,
  stream: "stdout" | "stderr" = "stderr",
): string {
  return colorize(stream) ? `\u001b[${codes[color]}m${text}\u001b[0m` : text;
}
