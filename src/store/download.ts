/**
 * Downloads one file: in pieces over several connections, or in one stream where the server gives
 * no pieces. What is there when it ends early stays, and the next download goes on from it.
 */
import { rm } from "node:fs/promises";
import { UserError } from "../errors.ts";
import { Exchange, withoutSecrets, type Access } from "./exchange.ts";
import type { Journal } from "./journal.ts";
import { openPartFile, type PartFile } from "./part-file.ts";
import { pieceBytesOf, Pieces, type Piece } from "./pieces.ts";
import { contentLength, contentRange, type RemoteFile } from "./remote-file.ts";
import { PassingFailure, Retry, sleep, type RetryOptions } from "./retry.ts";

export interface DownloadOptions extends RetryOptions {
  readonly connections: number;
  readonly access: Access;
  /** Told how many bytes of the file are there. */
  readonly onProgress: (doneBytes: number) => void;
  /** Opens the partial file; the disk by default. */
  readonly openPart?: (path: string) => Promise<PartFile>;
}

/** How much work a crash may cost. */
const checkpointMs = 2000;

/** The server, which gave pieces before, now sends all. */
class PiecesRefused extends Error {
  override readonly name = "PiecesRefused";
}

/** Fills the file at `path`. Throws when the signal comes, and for all that does not pass. */
export async function download(
  file: RemoteFile,
  path: string,
  journal: Journal,
  options: DownloadOptions,
): Promise<void> {
  try {
    if (file.givesRanges && file.sizeBytes !== undefined) {
      await downloadPieces(file, file.sizeBytes, path, journal, options);
    } else {
      await downloadStream(file, path, journal, options);
    }
  } catch (error) {
    if (!(error instanceof PiecesRefused)) throw error;
    await downloadStream(file, path, journal, options);
  }
}

/** The pieces of a file that its journal tells of, if it is still the same file. */
export async function openPieces(
  file: RemoteFile,
  sizeBytes: number,
  path: string,
  journal: Journal,
): Promise<Pieces> {
  const { fileName, identity } = file;
  const url = withoutSecrets(file.url);
  const started = journal.started(fileName);
  const isSame = started?.identity === identity && started?.sizeBytes === sizeBytes;
  if (started !== undefined && identity !== undefined && isSame) {
    const pieces = new Pieces(sizeBytes, started.pieceBytes, journal.done(fileName));
    // Somebody may have removed or cut it in between.
    if (Bun.file(path).size >= pieces.lastByte) return pieces;
  }
  await rm(path, { force: true });
  const pieceBytes = pieceBytesOf(sizeBytes);
  journal.start(fileName, { url, identity: identity ?? "", sizeBytes, pieceBytes });
  return new Pieces(sizeBytes, pieceBytes);
}

async function downloadPieces(
  file: RemoteFile,
  sizeBytes: number,
  path: string,
  journal: Journal,
  options: DownloadOptions,
): Promise<void> {
  const pieces = await openPieces(file, sizeBytes, path, journal);
  await using part = await (options.openPart ?? openPartFile)(path);
  // The first connection that fails for good ends the others.
  const ending = new AbortController();
  const signal = AbortSignal.any([options.signal, ending.signal]);
  const job: Job = { file, sizeBytes, part, pieces, options: { ...options, signal } };
  const checkpoint = async () => {
    const saved = pieces.all.map(({ index, doneBytes }) => ({ index, doneBytes }));
    // The journal must never be ahead of the disk.
    await part.flush();
    journal.save(
      file.fileName,
      saved.filter(({ doneBytes }) => doneBytes > 0),
    );
  };
  const recorder = recordRegularly(checkpoint, signal);
  try {
    options.onProgress(pieces.doneBytes);
    const workers = Array.from({ length: options.connections }, () => work(job));
    for (const worker of workers) worker.catch((error) => ending.abort(error));
    const [failed] = (await Promise.allSettled(workers)).filter(
      (result) => result.status === "rejected",
    );
    if (failed !== undefined) throw ending.signal.reason ?? failed.reason;
  } finally {
    ending.abort();
    await recorder;
    // A full disk keeps what was recorded before.
    await checkpoint().catch(() => {});
  }
}

interface Job {
  readonly file: RemoteFile;
  readonly sizeBytes: number;
  readonly part: PartFile;
  readonly pieces: Pieces;
  readonly options: DownloadOptions;
}

async function recordRegularly(checkpoint: () => Promise<void>, signal: AbortSignal) {
  try {
    for (;;) {
      await sleep(checkpointMs, signal);
      await checkpoint();
    }
  } catch {
    // Ended; or the disk is full, which the next write will tell.
  }
}

/** One connection: fetches pieces until none is left. */
async function work(job: Job): Promise<void> {
  const { pieces, options, file } = job;
  const retry = new Retry(withoutSecrets(file.url), options);
  for (let piece = pieces.take(); piece !== undefined; piece = pieces.take()) {
    try {
      while (piece.start + piece.doneBytes < piece.end) {
        const before = piece.doneBytes;
        try {
          await fetchPiece(piece, job);
        } catch (error) {
          if (piece.doneBytes > before) retry.progress();
          await retry.pause(error);
        }
      }
    } finally {
      pieces.giveBack(piece);
    }
  }
}

/** Fetches what a piece lacks. */
async function fetchPiece(piece: Piece, job: Job): Promise<void> {
  const { file, part, pieces, options, sizeBytes } = job;
  const range = { start: piece.start + piece.doneBytes, end: piece.end };
  using exchange = await Exchange.open(file.url, range, options.access, options);
  requireRange(exchange, range, file, sizeBytes);
  for await (const chunk of exchange.chunks()) {
    const offset = piece.start + piece.doneBytes;
    if (offset + chunk.length > piece.end) {
      throw new PassingFailure("the server sends more than it was asked for");
    }
    await part.write(chunk, offset);
    piece.doneBytes += chunk.length;
    options.onProgress(pieces.doneBytes);
  }
  if (piece.start + piece.doneBytes < piece.end) {
    throw new PassingFailure("the server sends less than it promises");
  }
}

function requireRange(
  { status, headers }: Exchange,
  range: { readonly start: number; readonly end: number },
  { url, identity, sha256 }: RemoteFile,
  sizeBytes: number,
): void {
  if (status === 200) throw new PiecesRefused();
  const given = contentRange(headers);
  const tag = headers.get("etag");
  // A hash of the hub is no tag of the server where the file lies.
  const isChanged = sha256 === undefined && tag?.startsWith('"') === true && tag !== identity;
  if (status === 416 || given?.total !== sizeBytes || isChanged) {
    const message = `${withoutSecrets(url)} changed while it was downloaded`;
    throw new UserError("failed", message, "give the same command again");
  }
  if (given.start !== range.start || given.end > range.end) {
    throw new PassingFailure("the server sends another part than it was asked for");
  }
}

/** One stream from the beginning. Cut in the middle, it begins anew. */
async function downloadStream(
  file: RemoteFile,
  path: string,
  journal: Journal,
  options: DownloadOptions,
): Promise<void> {
  const { fileName, sizeBytes = 0 } = file;
  const retry = new Retry(withoutSecrets(file.url), options);
  for (;;) {
    journal.start(fileName, {
      url: withoutSecrets(file.url),
      identity: "",
      sizeBytes,
      pieceBytes: pieceBytesOf(sizeBytes),
    });
    await rm(path, { force: true });
    try {
      await streamOnce(file, path, options);
      return;
    } catch (error) {
      await retry.pause(error);
    }
  }
}

async function streamOnce(file: RemoteFile, path: string, options: DownloadOptions): Promise<void> {
  await using part = await (options.openPart ?? openPartFile)(path);
  using exchange = await Exchange.open(file.url, undefined, options.access, options);
  const promised = file.sizeBytes ?? contentLength(exchange.headers);
  let doneBytes = 0;
  options.onProgress(doneBytes);
  for await (const chunk of exchange.chunks()) {
    if (promised !== undefined && doneBytes + chunk.length > promised) {
      throw new PassingFailure("the server sends more than it promises");
    }
    await part.write(chunk, doneBytes);
    doneBytes += chunk.length;
    options.onProgress(doneBytes);
  }
  if (promised !== undefined && doneBytes < promised) {
    throw new PassingFailure("the server sends less than it promises");
  }
  await part.flush();
}
