/** Brings a model file of this machine into the store. */
import { linkSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { openGguf } from "../gguf/file.ts";
import type { ModelStore, StoredFile } from "./model-store.ts";
import { cannotWrite, openPartFile } from "./part-file.ts";
import { placeModel, type Placed, type PlaceOptions } from "./placement.ts";

export interface ImportOptions extends PlaceOptions {
  /** Called while it is copied, and not at all if it need not be. */
  readonly onProgress: (doneBytes: number, totalBytes: number) => void;
}

/**
 * Takes a model file of this machine, with all its parts, into the store. The user's own file stays
 * as it is: the store has a second name of the same bytes, or a copy where that cannot be.
 */
export async function importModel(
  store: ModelStore,
  path: string,
  name: string,
  options: ImportOptions,
): Promise<Placed> {
  const given = fileNamesOf(path);
  const paths = given.map((one) => realpathSync(one));
  return placeModel(store, name, resolve(path), options, async () => {
    const staging = store.stagingFolder(name);
    for (const entry of readdirSync(staging)) rmSync(join(staging, entry), { recursive: true });
    const sizes = paths.map((one) => Bun.file(one).size);
    const totalBytes = sizes.reduce((sum, size) => sum + size, 0);
    const files: StoredFile[] = [];
    let doneBytes = 0;
    for (const [i, from] of paths.entries()) {
      // The name by which the user knows it, not that of what a symbolic link leads to.
      const fileName = basename(given[i] ?? from);
      const bytes = sizes[i] ?? 0;
      await linkOrCopy(from, join(staging, fileName), options, (done) => {
        if (done === 0) store.requireSpace(name, totalBytes - doneBytes);
        options.onProgress(doneBytes + done, totalBytes);
      });
      doneBytes += bytes;
      files.push({ name: fileName, bytes });
    }
    return files;
  });
}

function fileNamesOf(path: string): readonly string[] {
  using file = openGguf(path);
  return file.fileNames;
}

/** `onCopied` is called with 0 before the first byte, if it comes to copying. */
async function linkOrCopy(
  from: string,
  to: string,
  { signal }: PlaceOptions,
  onCopied: (doneBytes: number) => void,
): Promise<void> {
  try {
    linkSync(from, to);
    return;
  } catch {
    // Another disk, another owner, or no such thing as links: copied below.
  }
  onCopied(0);
  await using source = await open(from, "r");
  await using target = await openPartFile(to);
  const chunk = new Uint8Array(4 << 20);
  try {
    for (let doneBytes = 0; ;) {
      signal.throwIfAborted();
      const { bytesRead } = await source.read(chunk, 0, chunk.length, doneBytes);
      if (bytesRead === 0) break;
      await target.write(chunk.subarray(0, bytesRead), doneBytes);
      doneBytes += bytesRead;
      onCopied(doneBytes);
    }
    await target.flush();
  } catch (error) {
    throw signal.aborted ? signal.reason : cannotWrite(to, error);
  }
}
