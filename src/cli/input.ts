/** Text from stdin and from files that the command line names. */
import { readFileSync } from "node:fs";
import { UserError } from "../errors.ts";
import { errorCode, note } from "./output.ts";

/** Larger than any context. */
const textBytesMax = 1 << 30;

/** Whoever forgot that stdin is read must be told, or it looks like a hang. */
const patienceMs = 3000;

/**
 * What was piped in; empty if stdin is a terminal or closed. Throws a "usage" error for invalid
 * UTF-8.
 */
export async function readStdin(): Promise<string> {
  if (process.stdin.isTTY === true) return "";
  const reminder = setTimeout(
    () => note("waiting for the end of stdin (none? add </dev/null)"),
    patienceMs,
  );
  try {
    return decodeUtf8(await readAll(process.stdin), "stdin");
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError("usage", `stdin cannot be read (${errorCode(error)})`, "pipe a text in");
  } finally {
    clearTimeout(reminder);
  }
}

/** The same for commands that have no other input: at a terminal they would find nothing. */
export async function requireStdin(remedy: string): Promise<string> {
  if (process.stdin.isTTY !== true) return readStdin();
  throw new UserError("usage", "nothing is piped in", remedy);
}

async function readAll(stream: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let byteSize = 0;
  for await (const chunk of stream) {
    chunks.push(Uint8Array.from(chunk));
    byteSize += chunk.length;
    if (byteSize > textBytesMax) {
      throw new UserError("usage", "stdin holds more than 1 GiB", "send less text");
    }
  }
  return Buffer.concat(chunks);
}

/** A text file, or stdin for "-". Throws a "usage" error if it cannot be read or is no UTF-8. */
export async function readTextFile(path: string): Promise<string> {
  if (path === "-") return readStdin();
  try {
    return decodeUtf8(readFileSync(path), path);
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError("usage", `${path} cannot be read (${errorCode(error)})`, "check the path");
  }
}

function decodeUtf8(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UserError(
      "usage",
      `${name} is no valid UTF-8`,
      "convert it first, for instance with iconv",
    );
  }
}
