/**
 * GGUF files of real models' shapes that hold nothing but their headers: enough to record a model's
 * programs, whose kernels depend on shapes and types alone.
 */
import { GgufFile } from "../../src/gguf/file.ts";
import { readHeader } from "../../src/gguf/gguf.ts";
import { checkRange, type ByteSource } from "../../src/gguf/source.ts";
import { byteSize, type DType } from "../../src/tensor/dtype.ts";
import { forgeGguf, text, type ForgedTensor, type ForgedValue } from "../helpers/gguf-forge.ts";
import { forged, type Setting } from "../helpers/tiny-model.ts";

const alignment = 32;

export class HollowModel {
  readonly #architecture: string;
  readonly #name: string;
  readonly #pairs = new Map<string, ForgedValue>();
  readonly #tensors: ForgedTensor[] = [];
  #end = 0;

  constructor(architecture: string, name: string) {
    this.#architecture = architecture;
    this.#name = name;
    this.#pairs.set("general.architecture", text(architecture));
    this.#pairs.set("general.name", text(name));
    this.#pairs.set("tokenizer.ggml.model", text("none"));
  }

  set(settings: Readonly<Record<string, Setting>>): this {
    for (const [key, value] of Object.entries(settings))
      this.#pairs.set(`${this.#architecture}.${key}`, forged(value));
    return this;
  }

  /** `dims` as in the file: the row length first. */
  tensor(name: string, dims: readonly number[], type: DType = "F32"): this {
    const valueCount = dims.reduce((product, dim) => product * dim, 1);
    this.#tensors.push({ name, dims, type, bytes: new Uint8Array(0), offset: this.#end });
    this.#end += Math.ceil(byteSize(type, valueCount) / alignment) * alignment;
    return this;
  }

  open(): GgufFile {
    const header = forgeGguf({ pairs: [...this.#pairs], tensors: this.#tensors, alignment });
    const source = new HollowSource(this.#name, header, header.length + this.#end);
    const read = readHeader(source);
    return new GgufFile([source], read, read.tensors);
  }
}

/** A header, and zeros behind it. */
class HollowSource implements ByteSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly #header: Uint8Array;

  constructor(name: string, header: Uint8Array, sizeBytes: number) {
    this.name = name;
    this.#header = header;
    this.sizeBytes = sizeBytes;
  }

  readIntoSync(target: Uint8Array, offsetBytes: number): void {
    checkRange(this, target, offsetBytes);
    target.fill(0);
    target.set(this.#header.subarray(offsetBytes, offsetBytes + target.length));
  }

  async readInto(target: Uint8Array, offsetBytes: number): Promise<void> {
    this.readIntoSync(target, offsetBytes);
  }

  close(): void {}

  [Symbol.dispose](): void {}
}
