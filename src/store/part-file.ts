/** A file that is being downloaded, written at several places at once. */
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { UserError } from "../errors.ts";

/** What a download writes into; tests put a disk in its place that fills up. */
export interface PartFile extends AsyncDisposable {
  write(bytes: Uint8Array, offsetBytes: number): Promise<void>;
  /** Returns when all that was written is on the disk. */
  flush(): Promise<void>;
}

/** Opens it with what is in it. Throws a "failed" error if it cannot be written. */
export async function openPartFile(path: string): Promise<PartFile> {
  try {
    return new DiskFile(path, await open(path, constants.O_RDWR | constants.O_CREAT));
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

class DiskFile implements PartFile {
  readonly #path: string;
  readonly #handle: FileHandle;

  constructor(path: string, handle: FileHandle) {
    this.#path = path;
    this.#handle = handle;
  }

  async write(bytes: Uint8Array, offsetBytes: number): Promise<void> {
    try {
      for (let done = 0; done < bytes.length;) {
        const rest = bytes.length - done;
        const { bytesWritten } = await this.#handle.write(bytes, done, rest, offsetBytes + done);
        done += bytesWritten;
      }
    } catch (error) {
      throw cannotWrite(this.#path, error);
    }
  }

  async flush(): Promise<void> {
    try {
      await this.#handle.datasync();
    } catch (error) {
      throw cannotWrite(this.#path, error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}

const problems: Readonly<Record<string, readonly [reason: string, remedy: string]>> = {
  ENOSPC: ["the disk is full", "free some space; the same command then goes on where it ended"],
  EDQUOT: ["your share of the disk is used up", "free some space, and give the command again"],
  EFBIG: ["the disk takes no files of this size", "set ZINC_MODELS to a folder on another disk"],
  EACCES: ["permission denied", "make the folder writable, or set ZINC_MODELS to another"],
  EROFS: ["the disk is read-only", "set ZINC_MODELS to a folder on another disk"],
};

/** Every failure to write here, in words. */
export function cannotWrite(path: string, error: unknown): UserError {
  if (error instanceof UserError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
  const [reason, remedy] = problems[code] ?? [code, "check the disk"];
  return new UserError("failed", `${path} cannot be written: ${reason}`, remedy, { cause: error });
}
