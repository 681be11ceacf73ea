/**
 * Models split over several files, `NAME-00001-of-00003.gguf` and so on: names, and the checks that
 * the parts belong together. Pure: files are opened in `file.ts`.
 */
import { badFile } from "./bad-file.ts";
import type { GgufHeader } from "./gguf.ts";
import { limits } from "./limits.ts";
import type { TensorInfo } from "./tensor-info.ts";

const oneDownload = "take all parts from one download";

/** What a header says about being a part. */
export interface PartOf {
  /** From 0. */
  readonly index: number;
  readonly count: number;
}

/** A part with the path it was read from. */
export interface Part {
  readonly name: string;
  readonly header: GgufHeader;
}

/** Undefined for a file that is whole. */
export function partOf(header: GgufHeader, fileName: string): PartOf | undefined {
  const count = header.metadata.count("split.count") ?? 1;
  const index = header.metadata.count("split.no") ?? 0;
  if (count <= 1) return undefined;
  if (count > limits.parts) {
    throw badFile(fileName, `claims ${count} parts, more than ${limits.parts}`);
  }
  if (index >= count) throw badFile(fileName, `claims to be part ${index + 1} of ${count}`);
  return { index, count };
}

/**
 * The paths of all parts, from the path of one of them. Throws `UserError` if its name is not that
 * of the part that it is, because then the others cannot be found.
 */
export function partPaths(path: string, { index, count }: PartOf): string[] {
  const suffix = /-(\d{5})-of-(\d{5})(\.gguf)$/i.exec(path);
  const stem = suffix === null ? path.replace(/\.gguf$/i, "") : path.slice(0, suffix.index);
  const extension = suffix?.[3] ?? ".gguf";
  const paths: string[] = [];
  for (let number = 1; number <= count; number++) {
    paths.push(`${stem}-${five(number)}-of-${five(count)}${extension}`);
  }
  const expected = paths[index];
  if (expected === path) return paths;
  throw badFile(
    path,
    `is part ${index + 1} of ${count} of a split model but is not named so`,
    `rename it to ${expected}, beside the other parts`,
  );
}

function five(value: number): string {
  return String(value).padStart(5, "0");
}

/** Throws `UserError` unless `part` is the one at `index` of the model that `first` begins. */
export function checkPart(part: Part, index: number, first: Part): void {
  const { metadata } = part.header;
  const other = (what: string) =>
    badFile(part.name, `does not belong to ${first.name}: ${what}`, oneDownload);
  const count = first.header.metadata.count("split.count");
  const partCount = metadata.count("split.count");
  const partNumber = metadata.count("split.no");
  if (partCount === undefined) throw other("it is not a part of a split model");
  if (partCount !== count) throw other(`it is one of ${partCount} parts, not of ${count}`);
  if (partNumber !== index) {
    throw other(`it is part ${(partNumber ?? 0) + 1} by its metadata and ${index + 1} by its name`);
  }
  for (const key of ["split.tensors.count", "general.architecture"]) {
    const mine = scalar(part, key);
    const theirs = scalar(first, key);
    // Parts after the first usually carry the split.* keys alone.
    if (mine !== undefined && mine !== theirs) throw other(`${key} is ${mine}, not ${theirs}`);
  }
}

function scalar({ header }: Part, key: string): string | number | undefined {
  const { metadata } = header;
  return key === "general.architecture" ? metadata.string(key) : metadata.count(key);
}

/** One tensor table for all parts, whose order gives the file indices. */
export function mergeTensors(parts: readonly Part[]): TensorInfo[] {
  const merged = new Map<string, TensorInfo>();
  for (const [fileIndex, { name, header }] of parts.entries()) {
    for (const tensor of header.tensors) {
      const twin = merged.get(tensor.name);
      if (twin !== undefined) {
        throw badFile(name, `tensor ${tensor.name} is also in ${parts[twin.fileIndex]?.name}`);
      }
      merged.set(tensor.name, { ...tensor, fileIndex });
    }
  }
  const [first] = parts;
  const expected = first?.header.metadata.count("split.tensors.count");
  if (first !== undefined && expected !== undefined && expected !== merged.size) {
    throw badFile(
      first.name,
      `the ${parts.length} parts hold ${merged.size} tensors, not ${expected}`,
      oneDownload,
    );
  }
  return [...merged.values()];
}
