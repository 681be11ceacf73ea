/**
 * Positioned reads of one file of any size. A mapping would not do: an ArrayBuffer, and so a
 * mapping in Bun, ends at 4 GiB. Reads go straight to the caller's memory.
 */
import { closeSync, fstatSync, openSync, read, readdirSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { UserError, invariant } from "../errors.ts";
import { checkRange, type ByteSource } from "./source.ts";

/** Systems cut reads off just below 2 GiB; asking for less keeps the loop the same everywhere. */
const maxReadBytes = 2 ** 30;

export class FileSource implements ByteSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly #handle: number;
  #readsInFlight = 0;
  #isClosed = false;

  /** Throws `UserError` if the file is missing, unreadable or not a regular file. */
  constructor(path: string) {
    this.name = path;
    this.#handle = openRegularFile(path);
    this.sizeBytes = fstatSync(this.#handle).size;
  }

  readIntoSync(target: Uint8Array, offsetBytes: number): void {
    this.#checkRead(target, offsetBytes);
    let done = 0;
    while (done < target.length) {
      const wanted = Math.min(target.length - done, maxReadBytes);
      let count: number;
      try {
        count = readSync(this.#handle, target, done, wanted, offsetBytes + done);
      } catch (cause) {
        throw cannotRead(this.name, offsetBytes + done, cause);
      }
      if (count === 0) throw shrank(this.name, offsetBytes + target.length);
      done += count;
    }
  }

  async readInto(target: Uint8Array, offsetBytes: number): Promise<void> {
    this.#checkRead(target, offsetBytes);
    this.#readsInFlight++;
    try {
      let done = 0;
      while (done < target.length) {
        const count = await this.#readSome(target, done, offsetBytes + done);
        if (count === 0) throw shrank(this.name, offsetBytes + target.length);
        done += count;
      }
    } finally {
      this.#readsInFlight--;
      if (this.#isClosed) this.#closeIfIdle();
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closeIfIdle();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  /**
   * The system reuses the number of a closed file at once, so a read in flight must not outlive it.
   */
  #closeIfIdle(): void {
    if (this.#readsInFlight === 0) closeSync(this.#handle);
  }

  #checkRead(target: Uint8Array, offsetBytes: number): void {
    invariant(!this.#isClosed, `read of ${this.name} after it was closed`);
    checkRange(this, target, offsetBytes);
  }

  #readSome(target: Uint8Array, done: number, offsetBytes: number): Promise<number> {
    const wanted = Math.min(target.length - done, maxReadBytes);
    return new Promise((resolve, reject) => {
      read(this.#handle, target, done, wanted, offsetBytes, (cause, count) => {
        if (cause) reject(cannotRead(this.name, offsetBytes, cause));
        else resolve(count);
      });
    });
  }
}

function openRegularFile(path: string): number {
  try {
    // Asked before opening, because opening a pipe waits for somebody to write.
    const found = statSync(path);
    if (found.isDirectory()) throw isDirectory(path);
    if (!found.isFile()) throw new UserError("model", `${path} is not a regular file`);
    return openSync(path, "r");
  } catch (cause) {
    if (cause instanceof UserError) throw cause;
    throw cannotOpen(path, cause);
  }
}

/** What system error codes mean here, and what to do. */
const openProblems: Readonly<Record<string, readonly [reason: string, remedy?: string]>> = {
  ENOENT: ["no such file", "check the path"],
  ENOTDIR: ["no such file", "check the path"],
  EACCES: ["permission denied", "make it readable for this user"],
  EPERM: ["permission denied", "make it readable for this user"],
  ELOOP: ["its symbolic links go in circles"],
  ENAMETOOLONG: ["the name is too long"],
  EMFILE: ["too many open files", "raise the limit with `ulimit -n`"],
};

function cannotOpen(path: string, cause: unknown): UserError {
  const code = codeOf(cause);
  const [reason, remedy] = openProblems[code] ?? [code];
  return new UserError("model", `cannot open ${path}: ${reason}`, remedy, { cause });
}

function cannotRead(path: string, offsetBytes: number, cause: unknown): UserError {
  return new UserError(
    "model",
    `cannot read ${path} at byte ${offsetBytes}: ${codeOf(cause)}`,
    "check the disk, or download the file again",
    { cause },
  );
}

function shrank(path: string, neededBytes: number): UserError {
  return new UserError(
    "model",
    `${path} became shorter than ${neededBytes} bytes while it was read`,
    "do not change a model that is in use",
  );
}

function codeOf(error: unknown): string {
  if (error instanceof Error) return "code" in error ? String(error.code) : error.message;
  return String(error);
}

/** Names a model inside, if there is one: the most likely wish. */
function isDirectory(path: string): UserError {
  const [first] = readdirSync(path)
    .filter((name) => name.endsWith(".gguf"))
    .toSorted();
  const remedy =
    first === undefined ? "name a .gguf file" : `name a file in it, such as ${join(path, first)}`;
  return new UserError("model", `${path} is a directory`, remedy);
}
