/** Text from stdin and from files that the command line names. */
import { readFileSync } from "node:fs";
import { UserError } from "../errors.ts";

/** Larger than any context. */
const textBytesMax = 1 << 30;

/**
 * What was piped in; empty if stdin is a terminal or closed. Throws a "usage" error for invalid
 * UTF-8.
 */
export async function readStdin(): Promise<string> {
  if (process.stdin.isTTY === true) return "";
  const chunks: Buffer[] = [];
  let byteSize = 0;
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk));
    byteSize += chunk.length;
    if (byteSize > textBytesMax)
      throw new UserError("usage", "stdin holds more than 1 GiB", "send less text");
  }
  return decodeUtf8(Buffer.concat(chunks), "stdin");
}

/** A text file, or stdin for "-". Throws a "usage" error if it cannot be read or is no UTF-8. */
export async function readTextFile(path: string): Promise<string> {
  if (path === "-") return readStdin();
  try {
    return decodeUtf8(readFileSync(path), path);
  } catch (error) {
    if (error instanceof UserError) throw error;
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new UserError("usage", `${path} cannot be read (${code})`, "check the path");
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
