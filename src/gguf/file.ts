/** A GGUF model that is open for reading: one file, or all parts of a split one together. */
import { existsSync } from "node:fs";
import { UserError, invariant } from "../errors.ts";
import type { DType } from "../tensor/dtype.ts";
import { FileSource } from "./file-source.ts";
import { readHeader, type GgufHeader } from "./gguf.ts";
import type { Metadata } from "./metadata.ts";
import { MemorySource, type ByteSource } from "./source.ts";
import { checkPart, mergeTensors, partOf, partPaths, type Part } from "./split.ts";
import type { TensorInfo } from "./tensor-info.ts";
import { requireDType } from "./tensor-type.ts";

/**
 * Opens a model. Any part of a split model opens the whole of it. Throws `UserError` of kind
 * "model" if the file cannot be read, is not GGUF, is damaged, or lacks a part. Close it, or hold
 * it with `using`.
 */
export function openGguf(path: string): GgufFile {
  using opened = new DisposableStack();
  const source = opened.use(new FileSource(path));
  const header = readHeader(source);
  const place = partOf(header, path);
  const file =
    place === undefined
      ? new GgufFile([source], header, header.tensors)
      : openParts(opened, { name: path, header }, source, partPaths(path, place));
  opened.move();
  return file;
}

/** The same for a model that is in memory; `name` is for messages. Split models must be files. */
export function openGgufBytes(name: string, bytes: Uint8Array): GgufFile {
  const source = new MemorySource(name, bytes);
  const header = readHeader(source);
  if (partOf(header, name) !== undefined) {
    throw new UserError("model", `${name}: a part of a split model cannot be read from memory`);
  }
  return new GgufFile([source], header, header.tensors);
}

/** Opens the parts that are not open yet, and joins all of them. */
function openParts(
  opened: DisposableStack,
  given: Part,
  givenSource: ByteSource,
  paths: readonly string[],
): GgufFile {
  const sources: ByteSource[] = [];
  const parts: Part[] = [];
  for (const [index, name] of paths.entries()) {
    const isGiven = name === given.name;
    const source = isGiven ? givenSource : opened.use(openPart(name, index, given.name));
    const part = isGiven ? given : { name, header: readHeader(source) };
    sources.push(source);
    parts.push(part);
    checkPart(part, index, parts[0] ?? part);
  }
  const first = parts[0];
  invariant(first !== undefined, "a split model has parts");
  return new GgufFile(sources, first.header, mergeTensors(parts));
}

function openPart(path: string, index: number, givenPath: string): FileSource {
  try {
    return new FileSource(path);
  } catch (cause) {
    if (!(cause instanceof UserError) || existsSync(path)) throw cause;
    throw new UserError(
      "model",
      `${givenPath} is split, and part ${index + 1} is missing: ${cause.message}`,
      "download all parts into the same folder",
      { cause },
    );
  }
}

export class GgufFile implements Disposable {
  /** 1, 2 or 3. */
  readonly version: number;
  /** Of the first part, if there are several. */
  readonly metadata: Metadata;
  /** Of all parts, in the order of the files. */
  readonly tensors: readonly TensorInfo[];
  /** The paths; a tensor's `fileIndex` counts in them. */
  readonly fileNames: readonly string[];
  /** Of all parts together, headers included. */
  readonly sizeBytes: number;
  readonly #sources: readonly ByteSource[];
  readonly #byName: ReadonlyMap<string, TensorInfo>;

  /** Use `openGguf`. Takes ownership of the sources. */
  constructor(sources: readonly ByteSource[], header: GgufHeader, tensors: readonly TensorInfo[]) {
    this.version = header.version;
    this.metadata = header.metadata;
    this.tensors = tensors;
    this.fileNames = sources.map((source) => source.name);
    this.sizeBytes = sources.reduce((sum, source) => sum + source.sizeBytes, 0);
    this.#sources = sources;
    this.#byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  }

  tensor(name: string): TensorInfo | undefined {
    return this.#byName.get(name);
  }

  /** The type to compute with. Throws `UserError` if zinc cannot compute with the tensor's type. */
  dtypeOf(tensor: TensorInfo): DType {
    return requireDType(tensor, this.#source(tensor.fileIndex).name);
  }

  /**
   * Fills all of `target`, which may be mapped GPU memory, from a file at an absolute offset.
   * Throws `UserError` if the file has shrunk or the disk fails.
   */
  readIntoSync(target: Uint8Array, fileIndex: number, offsetBytes: number): void {
    this.#source(fileIndex).readIntoSync(target, offsetBytes);
  }

  /** The same without blocking; several may be in flight, and each target must outlive its read. */
  readInto(target: Uint8Array, fileIndex: number, offsetBytes: number): Promise<void> {
    return this.#source(fileIndex).readInto(target, offsetBytes);
  }

  /** All bytes of one tensor, for tests and small tensors: an array holds at most 4 GiB. */
  readTensorSync(tensor: TensorInfo): Uint8Array<ArrayBuffer> {
    invariant(tensor.sizeBytes !== undefined, `the size of tensor ${tensor.name} is unknown`);
    const bytes = new Uint8Array(tensor.sizeBytes);
    this.readIntoSync(bytes, tensor.fileIndex, tensor.offsetBytes);
    return bytes;
  }

  /** Closes the files once the reads in flight are done. */
  close(): void {
    for (const source of this.#sources) source.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #source(fileIndex: number): ByteSource {
    const source = this.#sources[fileIndex];
    invariant(source !== undefined, `file ${fileIndex} of ${this.#sources.length}`);
    return source;
  }
}
