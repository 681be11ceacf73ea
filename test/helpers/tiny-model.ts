/**
 * Writes a small model of any architecture with seeded random weights: enough of a GGUF file for
 * zinc and for llama.cpp, byte for byte the same in every run. It has no tokenizer.
 */
import { quantize } from "./quantize.ts";
import {
  forgeGguf,
  numbers,
  scalar,
  text,
  type ForgedTensor,
  type ForgedValue,
} from "./gguf-forge.ts";
import { SeededRandom } from "./seeded-random.ts";
import { dequantize } from "../../src/tensor/dequantize.ts";
import type { DType } from "../../src/tensor/dtype.ts";

/** Keys without the architecture before them: an integer, a float, a flag, or a list of these. */
export type Setting =
  number | boolean | string | { readonly float: number } | readonly number[] | readonly boolean[];

export class TinyModel {
  readonly architecture: string;
  readonly vocabularySize: number;
  readonly #random: SeededRandom;
  readonly #twin: boolean;
  readonly #pairs = new Map<string, ForgedValue>();
  readonly #tensors: ForgedTensor[] = [];

  /** `twin`: weights are stored as floats, rounded as their types would. */
  constructor(architecture: string, seed: number, vocabularySize = 320, twin = false) {
    this.architecture = architecture;
    this.#twin = twin;
    this.vocabularySize = vocabularySize;
    this.#random = new SeededRandom(seed);
    this.#pairs.set("general.architecture", text(architecture));
    this.#pairs.set("general.name", text(`tiny ${architecture}`));
    this.#pairs.set("tokenizer.ggml.model", text("none"));
    this.set({ vocab_size: vocabularySize, context_length: 4096 });
  }

  /** A setting that was there before is replaced. */
  set(settings: Readonly<Record<string, Setting>>): this {
    for (const [key, value] of Object.entries(settings))
      this.#pairs.set(`${this.architecture}.${key}`, forged(value));
    return this;
  }

  /** W of y = W · x; results are about as large as x. `dtype` must hold whole blocks a row. */
  matrix(name: string, rows: number, columns: number, dtype: DType = "F32"): this {
    return this.tensor(name, [columns, rows], this.#normal(rows * columns, columns), dtype);
  }

  /** `count` matrices in one tensor: experts. */
  matrices(name: string, count: number, rows: number, columns: number, dtype: DType = "F32"): this {
    const values = this.#normal(count * rows * columns, columns);
    return this.tensor(name, [columns, rows, count], values, dtype);
  }

  /** Values around 1. */
  norm(name: string, length: number): this {
    return this.between(name, [length], 0.7, 1.3);
  }

  bias(name: string, length: number, deviation = 0.5): this {
    return this.tensor(name, [length], this.#random.floats(length, deviation));
  }

  between(name: string, dims: readonly number[], low: number, high: number): this {
    const length = dims.reduce((product, dim) => product * dim, 1);
    const values = Float32Array.from({ length }, () => this.#random.between(low, high));
    return this.tensor(name, dims, values);
  }

  tensor(name: string, dims: readonly number[], values: Float32Array, dtype: DType = "F32"): this {
    const bytes = quantize(dtype, values);
    if (this.#twin) {
      const floats = quantize("F32", dequantize(dtype, bytes));
      this.#tensors.push({ name, dims, type: "F32", bytes: floats });
    } else this.#tensors.push({ name, dims, type: dtype, bytes });
    return this;
  }

  /** Gives a tensor of floats that was there other values, by their index. */
  replace(name: string, value: (index: number) => number): this {
    const at = this.#tensors.findIndex((tensor) => tensor.name === name);
    const tensor = this.#tensors[at];
    if (tensor === undefined) throw new Error(`no tensor ${name}`);
    const length = tensor.dims.reduce((product: number, dim) => product * Number(dim), 1);
    const values = Float32Array.from({ length }, (_unused, i) => value(i));
    this.#tensors[at] = { ...tensor, bytes: quantize("F32", values) };
    return this;
  }

  /** The file's bytes. */
  forge(): Uint8Array<ArrayBuffer> {
    return forgeGguf({ pairs: [...this.#pairs], tensors: this.#tensors });
  }

  #normal(count: number, columns: number): Float32Array {
    return this.#random.floats(count, 1 / Math.sqrt(columns));
  }
}

/** As metadata. */
export function forged(value: Setting): ForgedValue {
  if (typeof value === "number") return scalar("u32", value);
  if (typeof value === "boolean") return scalar("bool", value);
  if (typeof value === "string") return text(value);
  if ("float" in value) return scalar("f32", value.float);
  return numbers(typeof value[0] === "boolean" ? "bool" : "i32", value);
}
