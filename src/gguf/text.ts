/** Strings in a GGUF header: a length in bytes, then UTF-8. */
import { badFile, digits } from "./bad-file.ts";
import type { Cursor } from "./cursor.ts";

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const lenient = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Bytes as text; those that are not UTF-8 become U+FFFD. A byte order mark stays: U+FEFF may be a
 * token.
 */
export function decodeText(bytes: Uint8Array): string {
  return lenient.decode(bytes);
}

/** The length of the string that follows, checked against `limitBytes`. */
export function readLength(cursor: Cursor, limitBytes: number, subject: string): number {
  const byteCount = cursor.count();
  if (byteCount > limitBytes) {
    const problem = `is ${digits(byteCount)} bytes long, more than ${limitBytes}`;
    throw badFile(cursor.name, `${subject} ${problem}`);
  }
  return byteCount;
}

/** A value's text, UTF-8 or not: a wrong byte in a description is no reason to refuse a model. */
export function readText(cursor: Cursor, limitBytes: number, subject: string): string {
  return decodeText(cursor.bytes(readLength(cursor, limitBytes, subject)));
}

/** A key or a tensor name: not empty, valid UTF-8. */
export function readName(cursor: Cursor, limitBytes: number, subject: string): string {
  const bytes = cursor.bytes(readLength(cursor, limitBytes, subject));
  if (bytes.length === 0) throw badFile(cursor.name, `${subject} is empty`);
  try {
    return strict.decode(bytes);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw badFile(cursor.name, `${subject} is not valid UTF-8: "${decodeText(bytes)}"`);
  }
}
