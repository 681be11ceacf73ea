/**
 * The header of a GGUF file: magic, version, counts, metadata and the tensor table, in that order.
 * Pure over bytes; opening files and joining the parts of a split model is `file.ts`.
 */
import { badFile, digits, truncatedFile } from "./bad-file.ts";
import { Cursor } from "./cursor.ts";
import { explainForeign } from "./foreign.ts";
import { checkKnownKeys } from "./known-keys.ts";
import { limits } from "./limits.ts";
import { Metadata, type GgufValue } from "./metadata.ts";
import type { ByteSource } from "./source.ts";
import { minTensorInfoBytes, readTensorInfos, type TensorInfo } from "./tensor-info.ts";
import { readName } from "./text.ts";
import { readValue } from "./value.ts";

export interface GgufHeader {
  /** 1, 2 or 3. */
  readonly version: number;
  readonly metadata: Metadata;
  /** In the order of the file; all with file index 0. */
  readonly tensors: readonly TensorInfo[];
  /** Each tensor starts at a multiple of this. */
  readonly alignmentBytes: number;
}

const magic = "GGUF";
const newestVersion = 3;
/** Magic, version and two counts. */
const minHeaderBytes = 24;
const defaultAlignmentBytes = 32;

/** Reads and checks a header. Throws `UserError` of kind "model" for whatever is wrong with it. */
export function readHeader(source: ByteSource): GgufHeader {
  const cursor = new Cursor(source);
  checkMagic(cursor, source);
  const version = readVersion(cursor);
  cursor.countBytes = version === 1 ? 4 : 8;
  const tensorCount = readTotal(cursor, "tensors", limits.tensors);
  const pairCount = readTotal(cursor, "metadata keys", limits.pairs);
  const minPairBytes = cursor.countBytes + 1 + 4 + 1;
  cursor.ensure(pairCount * minPairBytes + tensorCount * minTensorInfoBytes(cursor.countBytes));

  const pairs = readPairs(cursor, pairCount);
  checkKnownKeys(pairs, source.name);
  const metadata = new Metadata(pairs, source.name);
  const alignmentBytes = readAlignment(metadata, source.name);
  const tensors = readTensorInfos(cursor, tensorCount, alignmentBytes, source.sizeBytes);
  return { version, metadata, tensors, alignmentBytes };
}

function checkMagic(cursor: Cursor, source: ByteSource): void {
  const found = latin1(cursor.bytes(Math.min(magic.length, source.sizeBytes)));
  if (found === magic) return;
  if (found !== "" && magic.startsWith(found)) {
    throw truncatedFile(source.name, minHeaderBytes, source.sizeBytes, true);
  }
  throw explainForeign(source);
}

function readVersion(cursor: Cursor): number {
  const version = cursor.u32();
  // The magic is the same in both byte orders; only the version tells, as its low half is never 0.
  if (version % 2 ** 16 === 0 && version !== 0) {
    throw badFile(
      cursor.name,
      "big-endian GGUF is not supported",
      "convert it with gguf-py's gguf_convert_endian.py, or take a little-endian file",
    );
  }
  if (version > newestVersion) {
    throw badFile(
      cursor.name,
      `GGUF version ${version} is newer than ${newestVersion}, the newest that zinc reads`,
      "update zinc",
    );
  }
  if (version === 0) throw badFile(cursor.name, "GGUF version 0 does not exist");
  return version;
}

function readTotal(cursor: Cursor, what: string, limit: number): number {
  const total = cursor.count();
  if (total > limit) {
    throw badFile(cursor.name, `claims ${digits(total)} ${what}, more than ${limit}`);
  }
  return total;
}

function readPairs(cursor: Cursor, count: number): Map<string, GgufValue> {
  const pairs = new Map<string, GgufValue>();
  for (let i = 0; i < count; i++) {
    const key = readName(cursor, limits.keyBytes, `metadata key ${i}`);
    if (pairs.has(key)) throw badFile(cursor.name, `metadata key ${key} is there twice`);
    pairs.set(key, readValue(cursor, key));
  }
  return pairs;
}

function readAlignment(metadata: Metadata, fileName: string): number {
  const alignment = metadata.number("general.alignment") ?? defaultAlignmentBytes;
  const isPowerOfTwo = alignment > 0 && Number.isInteger(Math.log2(alignment));
  if (!isPowerOfTwo || alignment < 8 || alignment > limits.alignmentBytes) {
    throw badFile(
      fileName,
      `general.alignment is ${alignment}, not a power of two from 8 to ${limits.alignmentBytes}`,
    );
  }
  return alignment;
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
