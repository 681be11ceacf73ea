/**
 * What of a model has been downloaded, kept beside the partial files. It is a small SQLite
 * database, for what that brings: it survives a crash at any moment, and whoever has it open keeps
 * all others out until the process ends, however it ends.
 */
import { Database } from "bun:sqlite";
import { existsSync, rmSync, statSync, writeFileSync } from "node:fs";
import { UserError } from "../errors.ts";

/** A file of the model as it was when its download began. */
export interface Started {
  readonly url: string;
  readonly identity: string;
  readonly sizeBytes: number;
  readonly pieceBytes: number;
}

/** Changes with the tables. */
const format = 1;

const tables = `
  CREATE TABLE IF NOT EXISTS files
    (name TEXT PRIMARY KEY, url TEXT, identity TEXT, size_bytes INTEGER, piece_bytes INTEGER);
  CREATE TABLE IF NOT EXISTS pieces
    (file TEXT, piece INTEGER, done_bytes INTEGER, PRIMARY KEY (file, piece));
`;

export class Journal implements Disposable {
  readonly #database: Database;
  readonly #path: string;

  private constructor(database: Database, path: string) {
    this.#database = database;
    this.#path = path;
  }

  /** Opens or creates it; undefined while another process, or another pull here, has it. */
  static tryOpen(path: string): Journal | undefined {
    for (;;) {
      const database = openExclusively(path);
      if (database !== "replaced") return database && new Journal(database, path);
    }
  }

  /** Whether no file has begun. */
  get isEmpty(): boolean {
    return this.#database.query("SELECT 1 FROM files").get() === null;
  }

  /** What was recorded of a file, if anything. */
  started(fileName: string): Started | undefined {
    const query = "SELECT url, identity, size_bytes, piece_bytes FROM files WHERE name = ?";
    const row = this.#database.query<StartedRow, string>(query).get(fileName);
    if (row === null) return undefined;
    const { url, identity, size_bytes: sizeBytes, piece_bytes: pieceBytes } = row;
    return { url, identity, sizeBytes, pieceBytes };
  }

  /** Bytes done, by the index of their piece. */
  done(fileName: string): Map<number, number> {
    const query = "SELECT piece, done_bytes FROM pieces WHERE file = ?";
    const rows = this.#database.query<PieceRow, string>(query).all(fileName);
    return new Map(rows.map((row) => [row.piece, row.done_bytes]));
  }

  /** Records that a file begins anew. */
  start(fileName: string, { url, identity, sizeBytes, pieceBytes }: Started): void {
    this.forget(fileName);
    this.#database.run("INSERT INTO files VALUES (?, ?, ?, ?, ?)", [
      fileName,
      url,
      identity,
      sizeBytes,
      pieceBytes,
    ]);
  }

  /** Records bytes that are on the disk, all of them or none. */
  save(fileName: string, pieces: readonly { index: number; doneBytes: number }[]): void {
    const insert = this.#database.query("INSERT OR REPLACE INTO pieces VALUES (?, ?, ?)");
    this.#database.transaction(() => {
      for (const { index, doneBytes } of pieces) insert.run(fileName, index, doneBytes);
    })();
  }

  forget(fileName: string): void {
    this.#database.run("DELETE FROM files WHERE name = ?", [fileName]);
    this.#database.run("DELETE FROM pieces WHERE file = ?", [fileName]);
  }

  /** Removes it from the disk, and lets others in. */
  remove(): void {
    // First the file, or another could open what is about to vanish.
    removeFiles(this.#path);
    this.#database.close();
  }

  /** Lets others in. */
  [Symbol.dispose](): void {
    this.#database.close();
  }
}

interface StartedRow {
  readonly url: string;
  readonly identity: string;
  readonly size_bytes: number;
  readonly piece_bytes: number;
}

interface PieceRow {
  readonly piece: number;
  readonly done_bytes: number;
}

/** Bytes done and all bytes of a download that nobody works on; undefined if it cannot be told. */
export function readProgress(
  path: string,
): { readonly doneBytes: number; readonly totalBytes: number } | undefined {
  if (!existsSync(path)) return undefined;
  try {
    using database = new Database(path, { readonly: true });
    const total = database.query<{ n: number }, []>("SELECT sum(size_bytes) AS n FROM files").get();
    const done = database.query<{ n: number }, []>("SELECT sum(done_bytes) AS n FROM pieces").get();
    return { doneBytes: done?.n ?? 0, totalBytes: total?.n ?? 0 };
  } catch {
    return undefined;
  }
}

/**
 * Undefined if somebody else has it; "replaced" if the file at the path is no longer the one that
 * was locked, because its owner has removed it in between.
 */
function openExclusively(path: string): Database | undefined | "replaced" {
  let database: Database | undefined;
  try {
    writeFileSync(path, "", { flag: "a" });
    const before = statSync(path).ino;
    database = new Database(path, { readwrite: true });
    database.run("PRAGMA busy_timeout = 0");
    // In this mode the lock of the first transaction stays.
    database.run("PRAGMA locking_mode = EXCLUSIVE");
    database.run("BEGIN EXCLUSIVE");
    prepare(database);
    database.run("COMMIT");
    if (statSync(path, { throwIfNoEntry: false })?.ino === before) return database;
    database.close();
    return "replaced";
  } catch (error) {
    database?.close();
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    if (code.startsWith("SQLITE_BUSY")) return undefined;
    if (code !== "SQLITE_NOTADB" && code !== "SQLITE_CORRUPT") throw unusable(path, code, error);
    // Damaged: what it told is lost, and the download begins anew.
    removeFiles(path);
    return "replaced";
  }
}

/** A journal of another version is as good as none. */
function prepare(database: Database): void {
  const version = database.query<{ user_version: number }, []>("PRAGMA user_version").get();
  if (version?.user_version !== format) {
    database.run("DROP TABLE IF EXISTS files");
    database.run("DROP TABLE IF EXISTS pieces");
    database.run(`PRAGMA user_version = ${format}`);
  }
  database.run(tables);
}

function removeFiles(path: string): void {
  for (const suffix of ["", "-journal"]) rmSync(path + suffix, { force: true });
}

function unusable(path: string, code: string, cause: unknown): UserError {
  const isFull = code === "SQLITE_FULL" || code === "ENOSPC";
  const remedy = isFull ? "free some space on the disk" : "put ZINC_MODELS on a local disk";
  return new UserError("failed", `${path} cannot be written (${code})`, remedy, { cause });
}
