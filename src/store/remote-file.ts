/** What a server says of a file before it is downloaded: size, hash, and whether it gives parts. */
import { UserError } from "../errors.ts";
import { explainForeign } from "../gguf/foreign.ts";
import { MemorySource } from "../gguf/source.ts";
import { Exchange, withoutSecrets, type Access } from "./exchange.ts";
import type { RemoteReference } from "./reference.ts";
import { impatient, PassingFailure, Retry, type RetryOptions } from "./retry.ts";

export interface RemoteFile {
  readonly url: string;
  readonly fileName: string;
  /** Undefined if the server does not say. */
  readonly sizeBytes: number | undefined;
  readonly sha256: string | undefined;
  /** Changes when the file does: a hash, a tag or a date; undefined if there is none. */
  readonly identity: string | undefined;
  readonly givesRanges: boolean;
}

/** Enough to tell a model from a page that says what went wrong. */
const headBytes = 1024;

/**
 * Asks for the first bytes. Throws a "model" error if they are no GGUF, or if the file is not the
 * one that is known under this address.
 */
export async function probe(
  reference: RemoteReference,
  access: Access,
  options: RetryOptions,
): Promise<RemoteFile> {
  const retry = new Retry(withoutSecrets(reference.url), impatient(options));
  for (;;) {
    try {
      return await probeOnce(reference, access, options);
    } catch (error) {
      await retry.pause(error);
    }
  }
}

async function probeOnce(
  reference: RemoteReference,
  access: Access,
  options: RetryOptions,
): Promise<RemoteFile> {
  const { url, fileName } = reference;
  const shown = withoutSecrets(url);
  using exchange = await Exchange.open(url, { start: 0, end: headBytes }, access, options);
  const { status, headers } = exchange;
  if (status === 416) throw new UserError("model", `${shown} is empty`, "check the address");
  const sizeBytes = status === 206 ? contentRange(headers)?.total : contentLength(headers);
  const head = await readHead(exchange, Math.min(headBytes, sizeBytes ?? headBytes));
  if (head.toString("latin1", 0, 4) !== "GGUF") throw explainForeign(new MemorySource(shown, head));
  const sha256 = linkedHash(headers);
  const claimed = Number(headers.get("x-linked-size") ?? Number.NaN);
  const known = [reference.sizeBytes, Number.isNaN(claimed) ? undefined : claimed];
  requireKnown(shown, reference.sha256, sha256, "sha256");
  for (const size of known) requireKnown(shown, size, sizeBytes, "bytes");
  return {
    url,
    fileName,
    sizeBytes: sizeBytes ?? known.find((size) => size !== undefined),
    sha256: reference.sha256 ?? sha256,
    identity: reference.sha256 ?? sha256 ?? validatorOf(headers),
    givesRanges: status === 206 && sizeBytes !== undefined,
  };
}

async function readHead(exchange: Exchange, wantedBytes: number): Promise<Buffer> {
  let head = Buffer.alloc(0);
  for await (const chunk of exchange.chunks()) {
    head = Buffer.concat([head, chunk]);
    if (head.length >= wantedBytes) break;
  }
  // Less than was promised is a cut connection. What tells no length may be short.
  const promised = contentLength(exchange.headers) ?? head.length;
  if (head.length < wantedBytes && promised !== head.length) {
    throw new PassingFailure("the connection was cut");
  }
  return head.subarray(0, wantedBytes);
}

function requireKnown<T>(shown: string, known: T | undefined, found: T | undefined, unit: string) {
  if (known === undefined || found === undefined || known === found) return;
  throw new UserError(
    "model",
    `${shown} is another file than it should be: ${unit} ${found}, not ${known}`,
    "it was replaced, or a server in between damages it: look at the model's page",
  );
}

export interface ContentRange {
  readonly start: number;
  readonly end: number;
  readonly total: number | undefined;
}

/** "bytes 0-1023/5000"; undefined if it is not understood. */
export function contentRange(headers: Headers): ContentRange | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/i.exec(headers.get("content-range") ?? "");
  if (match === null) return undefined;
  const [, first, last, total] = match;
  return {
    start: Number(first),
    end: Number(last) + 1,
    total: total === "*" ? undefined : Number(total),
  };
}

/** Undefined if it is missing, or counts compressed bytes. */
export function contentLength(headers: Headers): number | undefined {
  const length = headers.get("content-length");
  if (length === null || headers.has("content-encoding")) return undefined;
  return /^\d+$/.test(length) ? Number(length) : undefined;
}

/** The hub gives the hash of large files as their tag. */
function linkedHash(headers: Headers): string | undefined {
  return /^(?:W\/)?"?([0-9a-f]{64})"?$/i
    .exec(headers.get("x-linked-etag") ?? "")?.[1]
    ?.toLowerCase();
}

/** Weak tags are the same for files that differ a little. */
function validatorOf(headers: Headers): string | undefined {
  const tag = headers.get("etag");
  return tag?.startsWith('"') ? tag : (headers.get("last-modified") ?? undefined);
}
