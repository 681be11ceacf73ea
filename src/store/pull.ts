/** Brings a model from a server into the store. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../errors.ts";
import { openGguf } from "../gguf/file.ts";
import { sha256Of } from "./checksum.ts";
import { download, openPieces, type DownloadOptions } from "./download.ts";
import type { Journal } from "./journal.ts";
import type { ModelStore, StoredFile } from "./model-store.ts";
import { placeModel, type Placed, type PlaceOptions } from "./placement.ts";
import type { Source } from "./reference.ts";
import { probe, type RemoteFile } from "./remote-file.ts";

export interface PullOptions extends Omit<DownloadOptions, "onProgress">, PlaceOptions {
  readonly onProgress: (
    phase: "downloading" | "checking",
    doneBytes: number,
    totalBytes: number,
  ) => void;
}

/**
 * Downloads all files of a model, checks them and installs them under `name`. Throws the signal's
 * reason if it comes; what is there by then stays for the next time.
 */
export async function pullModel(
  store: ModelStore,
  source: Source,
  name: string,
  options: PullOptions,
): Promise<Placed> {
  return placeModel(store, name, source.label, options, async (journal) => {
    const remotes: RemoteFile[] = [];
    for (const file of source.files) remotes.push(await probe(file, options.access, options));
    const staging = store.stagingFolder(name);
    const wanted = new Set(remotes.map(({ fileName }) => fileName));
    for (const entry of readdirSync(staging)) {
      if (!wanted.has(entry)) rmSync(join(staging, entry), { recursive: true, force: true });
    }
    await requireRoom(store, name, remotes, staging, journal);
    await downloadAll(remotes, staging, journal, options);
    const files = await checkHashes(remotes, staging, journal, options);
    try {
      requireModel(join(staging, remotes[0]?.fileName ?? ""), source.label, staging);
    } catch (error) {
      discard(remotes, staging, journal);
      throw error;
    }
    return files;
  });
}

/** What is there already needs no room. */
async function requireRoom(
  store: ModelStore,
  name: string,
  remotes: readonly RemoteFile[],
  staging: string,
  journal: Journal,
): Promise<void> {
  let neededBytes = 0;
  for (const file of remotes) {
    const { sizeBytes = 0, fileName, givesRanges } = file;
    const isResumed = givesRanges && sizeBytes > 0;
    const pieces = isResumed
      ? await openPieces(file, sizeBytes, join(staging, fileName), journal)
      : undefined;
    neededBytes += sizeBytes - (pieces?.doneBytes ?? 0);
  }
  store.requireSpace(name, neededBytes);
}

async function downloadAll(
  remotes: readonly RemoteFile[],
  staging: string,
  journal: Journal,
  options: PullOptions,
): Promise<void> {
  const totalBytes = remotes.reduce((sum, { sizeBytes = 0 }) => sum + sizeBytes, 0);
  let before = 0;
  for (const file of remotes) {
    const onProgress = (doneBytes: number) =>
      options.onProgress("downloading", before + doneBytes, totalBytes);
    await download(file, join(staging, file.fileName), journal, { ...options, onProgress });
    before += file.sizeBytes ?? 0;
  }
}

async function checkHashes(
  remotes: readonly RemoteFile[],
  staging: string,
  journal: Journal,
  options: PullOptions,
): Promise<StoredFile[]> {
  const sizes = remotes.map(({ fileName }) => Bun.file(join(staging, fileName)).size);
  const totalBytes = sizes.reduce((sum, size) => sum + size, 0);
  const files: StoredFile[] = [];
  let before = 0;
  for (const [i, file] of remotes.entries()) {
    const { fileName, sha256 } = file;
    const bytes = sizes[i] ?? 0;
    if (sha256 !== undefined) {
      const path = join(staging, fileName);
      const found = await sha256Of(path, options.signal, (doneBytes) =>
        options.onProgress("checking", before + doneBytes, totalBytes),
      );
      if (found !== sha256) {
        discard([file], staging, journal);
        const message = `${fileName} arrived damaged: its sha256 is ${found}, not ${sha256}`;
        throw new UserError("model", message, "it was removed; give the same command again");
      }
    }
    before += bytes;
    files.push({ name: fileName, bytes, sha256 });
  }
  return files;
}

/** Throws a "model" error that names the source, not the folder in which the file lies hidden. */
function requireModel(path: string, label: string, staging: string): void {
  try {
    openGguf(path).close();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const message = error.message.replaceAll(staging, label);
    throw new UserError(error.kind, message, "it was removed; take another file", { cause: error });
  }
}

function discard(remotes: readonly RemoteFile[], staging: string, journal: Journal): void {
  for (const { fileName } of remotes) {
    rmSync(join(staging, fileName), { force: true });
    journal.forget(fileName);
  }
}
