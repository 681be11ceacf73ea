/** How a model gets its name in the store: one at a time, and whole. */
import { UserError } from "../errors.ts";
import type { Journal } from "./journal.ts";
import { writeManifest } from "./manifest.ts";
import type { ModelStore, StoredFile, StoredModel } from "./model-store.ts";
import { sleep } from "./retry.ts";

export interface PlaceOptions {
  /** Take it again if it is there. */
  readonly force: boolean;
  readonly signal: AbortSignal;
  /** Told once if another process has the model at work. */
  readonly onWait: () => void;
}

export interface Placed {
  readonly model: StoredModel;
  /** False if it was there already. */
  readonly isNew: boolean;
}

const lockPollMs = 500;

/**
 * Has `fill` put the files of a model into its staging folder, and makes it one of the store's.
 * What a download has begun stays there if `fill` throws.
 */
export async function placeModel(
  store: ModelStore,
  name: string,
  label: string,
  options: PlaceOptions,
  fill: (journal: Journal) => Promise<StoredFile[]>,
): Promise<Placed> {
  const before = present(store, name, label, options.force);
  if (before !== undefined) return { model: before, isNew: false };
  const journal = await lock(store, name, options);
  try {
    // It may have come while this waited.
    const since = present(store, name, label, options.force);
    if (since !== undefined) {
      journal.remove();
      return { model: since, isNew: false };
    }
    const files = await fill(journal);
    options.signal.throwIfAborted();
    const added = new Date().toISOString();
    writeManifest(store.stagingFolder(name), { source: label, added, files: files.map(clean) });
    return { model: store.install(name, journal), isNew: true };
  } catch (error) {
    store.release(name, journal);
    throw error;
  }
}

function clean({ name, bytes, sha256 }: StoredFile) {
  return { name, bytes, ...(sha256 !== undefined && { sha256 }) };
}

function present(store: ModelStore, name: string, label: string, force: boolean) {
  const model = force ? undefined : store.find(name);
  if (model === undefined || model.source === undefined || model.source === label) return model;
  throw new UserError(
    "failed",
    `${name} is here already, from ${model.source}`,
    "choose another name with --name, or replace it with --force",
  );
}

async function lock(
  store: ModelStore,
  name: string,
  { signal, onWait }: PlaceOptions,
): Promise<Journal> {
  for (let isFirst = true; ; isFirst = false) {
    signal.throwIfAborted();
    const journal = store.tryLock(name);
    if (journal !== undefined) return journal;
    if (isFirst) onWait();
    await sleep(lockPollMs, signal);
  }
}
