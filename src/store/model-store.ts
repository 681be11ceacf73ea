/**
 * The folder of managed models. Each is a folder of its own:
 *
 *     qwen3.5-2b/model.json                    where it comes from
 *     qwen3.5-2b/Qwen3.5-2B-Q4_K_M.gguf        one file, or all parts
 *     .partial/llama-3.1-8b/…                  a download that is not finished
 *     .partial/llama-3.1-8b.journal            what of it is there, and the lock
 *
 * A model appears under its name by one rename, whole and checked.
 */
import { mkdirSync, readdirSync, renameSync, rmSync, statfsSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { UserError } from "../errors.ts";
import { formatBytes } from "../math.ts";
import { Journal, readProgress } from "./journal.ts";
import { readManifest } from "./manifest.ts";
import { isModelName, normalName } from "./model-name.ts";
import { cannotWrite } from "./part-file.ts";

export interface StoredFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256?: string | undefined;
}

export interface StoredModel {
  readonly name: string;
  /** Of the file to open: the first part, if there are several. */
  readonly path: string;
  readonly sizeBytes: number;
  readonly files: readonly StoredFile[];
  readonly source: string | undefined;
  readonly added: string | undefined;
}

export interface PartialModel {
  readonly name: string;
  readonly doneBytes: number;
  /** 0 if it is not known. */
  readonly totalBytes: number;
}

const partialFolder = ".partial";

export class ModelStore {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** All models that are whole, by name. */
  list(): StoredModel[] {
    return this.#entries(this.folder)
      .filter((name) => isModelName(name) && name === normalName(name))
      .flatMap((name) => this.find(name) ?? [])
      .toSorted((a, b) => a.name.localeCompare(b.name));
  }

  find(wanted: string): StoredModel | undefined {
    const name = normalName(wanted);
    const folder = join(this.folder, name);
    const files = this.#entries(folder)
      .filter((file) => /\.gguf$/i.test(file))
      .toSorted();
    const [first] = files;
    if (!isModelName(name) || first === undefined) return undefined;
    const manifest = readManifest(folder);
    const described = files.map((file) => {
      const sha256 = manifest?.files.find((one) => one.name === file)?.sha256;
      return { name: file, bytes: sizeOf(join(folder, file)), sha256 };
    });
    return {
      name,
      path: join(folder, first),
      sizeBytes: described.reduce((sum, { bytes }) => sum + bytes, 0),
      files: described,
      source: manifest?.source,
      added: manifest?.added,
    };
  }

  /** The model whose file this is, if it is one of the store's. */
  findByPath(path: string): StoredModel | undefined {
    const folder = dirname(resolve(path));
    return dirname(folder) === resolve(this.folder) ? this.find(basename(folder)) : undefined;
  }

  /** Downloads that have begun and are not finished. */
  partials(): PartialModel[] {
    return this.#entries(join(this.folder, partialFolder)).flatMap((file) => {
      const name = /^(.+)\.journal$/.exec(file)?.[1];
      if (name === undefined) return [];
      const progress = readProgress(this.#journalPath(name)) ?? { doneBytes: 0, totalBytes: 0 };
      return [{ name, ...progress }];
    });
  }

  /** Where the files of an unfinished model lie; made if it is missing. */
  stagingFolder(name: string): string {
    const folder = join(this.folder, partialFolder, name);
    makeFolder(folder);
    return folder;
  }

  /** The right to change a model; undefined while somebody else has it. */
  tryLock(name: string): Journal | undefined {
    makeFolder(join(this.folder, partialFolder));
    return Journal.tryOpen(this.#journalPath(name));
  }

  /** Gives the right back. Nothing stays of a download that has not begun. */
  release(name: string, journal: Journal): void {
    if (!journal.isEmpty) {
      journal[Symbol.dispose]();
      return;
    }
    rmSync(join(this.folder, partialFolder, name), { recursive: true, force: true });
    journal.remove();
  }

  /** Makes what is in the staging folder the model, in place of what was there before. */
  install(name: string, journal: Journal): StoredModel {
    const target = join(this.folder, name);
    const old = this.#trash(name);
    try {
      if (statSync(target, { throwIfNoEntry: false }) !== undefined) renameSync(target, old);
      renameSync(this.stagingFolder(name), target);
    } catch (error) {
      throw cannotWrite(target, error);
    }
    rmSync(old, { recursive: true, force: true });
    journal.remove();
    const model = this.find(name);
    if (model !== undefined) return model;
    throw new UserError("failed", `${target} vanished`, "give the same command again");
  }

  /** Removes a model and what was downloaded of it; false if there is neither. */
  remove(wanted: string): boolean {
    const name = normalName(wanted);
    const isPartial = this.partials().some((partial) => partial.name === name);
    if (this.find(name) === undefined && !isPartial) return false;
    const journal = this.tryLock(name);
    if (journal === undefined) {
      const message = `${name} is being downloaded by another process`;
      throw new UserError("failed", message, "stop that first");
    }
    const old = this.#trash(name);
    try {
      const target = join(this.folder, name);
      // One rename, so that nobody finds half of it.
      if (statSync(target, { throwIfNoEntry: false }) !== undefined) renameSync(target, old);
      rmSync(old, { recursive: true, force: true });
      rmSync(join(this.folder, partialFolder, name), { recursive: true, force: true });
    } catch (error) {
      journal[Symbol.dispose]();
      throw cannotWrite(old, error);
    }
    journal.remove();
    return true;
  }

  /** Throws a "failed" error unless the disk has room. */
  requireSpace(what: string, neededBytes: number): void {
    makeFolder(this.folder);
    const { bavail, bsize, blocks } = statfsSync(this.folder);
    const freeBytes = bavail * bsize;
    // Some network file systems tell nothing.
    if (blocks === 0 || neededBytes <= freeBytes) return;
    throw new UserError(
      "failed",
      `${what} needs ${formatBytes(neededBytes)} more, and ${this.folder} has ` +
        `${formatBytes(freeBytes)} free`,
      "free some space, or set ZINC_MODELS to a folder on another disk",
    );
  }

  #journalPath(name: string): string {
    return join(this.folder, partialFolder, `${name}.journal`);
  }

  #trash(name: string): string {
    const folder = join(this.folder, partialFolder);
    makeFolder(folder);
    return join(folder, `${name}.old-${process.pid}`);
  }

  /** What a folder holds; nothing if it is missing. */
  #entries(folder: string): string[] {
    try {
      return readdirSync(folder);
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code === "ENOENT" || code === "ENOTDIR") return [];
      const remedy = "make it readable, or set ZINC_MODELS to another";
      throw new UserError("failed", `${folder} cannot be read (${code})`, remedy, { cause: error });
    }
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw cannotWrite(folder, error);
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
