/**
 * Hyper-parameters of a model from its metadata: every number is checked before anything is sized
 * by it.
 */
import { UserError } from "../errors.ts";
import type { GgufFile } from "../gguf/file.ts";
import type { Metadata } from "../gguf/metadata.ts";

/** What every architecture tells. */
export interface ModelConfig {
  /** `general.architecture` */
  readonly architecture: string;
  /** `general.name`, else the file's name. */
  readonly name: string;
  readonly layerCount: number;
  /** Tokens that the model was trained to look back on. */
  readonly contextLength: number;
  readonly width: number;
  readonly vocabularySize: number;
  /** How hidden states become an embedding; "rank" is for models that give none. */
  readonly pooling: Pooling | "rank";
}

/** The mean of all tokens, or the first or last of them. */
export type Pooling = "mean" | "first" | "last";

/** By the numbers of `pooling_type`; a model that was made to write knows most at its end. */
const poolings = ["last", "mean", "first", "last", "rank"] as const;

/** No model is near these; a file that exceeds one is damaged or hostile. */
const limits = {
  layers: 1024,
  width: 1 << 20,
  heads: 4096,
  context: 1 << 30,
} as const;

/** Reads keys of one architecture: `count("block_count")` is `<architecture>.block_count`. */
export class ConfigReader {
  readonly architecture: string;
  readonly metadata: Metadata;
  readonly file: GgufFile;

  constructor(file: GgufFile, architecture: string) {
    this.file = file;
    this.metadata = file.metadata;
    this.architecture = architecture;
  }

  /** An integer from 1 to `max`; `fallback` stands in for a missing key. */
  count(key: string, max: number, fallback?: number): number {
    const full = this.#full(key);
    const value = this.metadata.count(full) ?? fallback;
    if (value === undefined) throw this.bad(`metadata ${full} is missing`);
    if (value < 1 || value > max)
      throw this.bad(`metadata ${full} is ${value} and must be 1 to ${max}`);
    return value;
  }

  /** An integer from 0 to `max`; 0 stands in for a missing key. */
  optionalCount(key: string, max: number): number {
    const full = this.#full(key);
    const value = this.metadata.count(full) ?? 0;
    if (value > max) throw this.bad(`metadata ${full} is ${value} and must be 0 to ${max}`);
    return value;
  }

  /** A positive, finite number. */
  positive(key: string, fallback?: number): number {
    const full = this.#full(key);
    const value = this.metadata.number(full) ?? fallback;
    if (value === undefined) throw this.bad(`metadata ${full} is missing`);
    if (!(value > 0 && value < Number.POSITIVE_INFINITY)) {
      throw this.bad(`metadata ${full} is ${value} and must be above 0`);
    }
    return value;
  }

  /** A positive, finite number, or undefined for a missing key and for 0, which means "none". */
  optionalPositive(key: string): number | undefined {
    const isAbsent = (this.optionalNumber(key) ?? 0) === 0;
    return isAbsent ? undefined : this.positive(key);
  }

  optionalNumber(key: string): number | undefined {
    return this.metadata.number(this.#full(key));
  }

  optionalString(key: string): string | undefined {
    return this.metadata.string(this.#full(key));
  }

  optionalFlag(key: string): boolean | undefined {
    return this.metadata.boolean(this.#full(key));
  }

  /** Integers, one a layer: written as an array, or as one number that holds for all of them. */
  counts(key: string, layerCount: number, { min, max }: { min: number; max: number }): number[] {
    const full = this.#full(key);
    const values = this.#list(full, layerCount);
    if (values === undefined) throw this.bad(`metadata ${full} is missing`);
    const wrong = values.find((value) => !Number.isInteger(value) || value < min || value > max);
    if (wrong === undefined) return values;
    throw this.bad(`metadata ${full} holds ${wrong} and must be ${min} to ${max}`);
  }

  /**
   * Keys that a query of each layer sees; undefined where it sees all. Unless the file says which
   * layers have a window, all but every `period`-th do.
   */
  windows(layerCount: number, period: number, fallback?: number): (number | undefined)[] {
    const window = this.count("attention.sliding_window", limits.context, fallback);
    const flags = this.#windowFlags(layerCount, period);
    return flags.map((hasWindow) => (hasWindow ? window : undefined));
  }

  /** Numbers or booleans, which are 0 and 1. */
  optionalNumbers(key: string): ArrayLike<number> | undefined {
    return this.metadata.numbers(this.#full(key));
  }

  /** What all architectures have. The vocabulary is as large as the embedding table. */
  common(): ModelConfig {
    return {
      architecture: this.architecture,
      name: this.metadata.string("general.name") ?? this.file.fileNames[0] ?? "",
      layerCount: this.count("block_count", limits.layers),
      contextLength: this.count("context_length", limits.context),
      width: this.count("embedding_length", limits.width),
      vocabularySize: this.#vocabularySize(),
      pooling: poolings[this.optionalCount("pooling_type", poolings.length - 1)] ?? "last",
    };
  }

  heads(): { heads: number; kvHeads: number } {
    const heads = this.count("attention.head_count", limits.heads);
    const kvHeads = this.count("attention.head_count_kv", limits.heads, heads);
    if (heads % kvHeads !== 0) {
      throw this.bad(`${heads} attention heads cannot share ${kvHeads} key/value heads evenly`);
    }
    return { heads, kvHeads };
  }

  bad(message: string): UserError {
    return new UserError(
      "model",
      `${this.file.fileNames[0] ?? "model"}: ${message}`,
      "the file is damaged or made by a faulty converter; download it again",
    );
  }

  /** Nothing is wrong with the file; its model has what kernels are not made for. */
  unsupported(what: string): UserError {
    return new UserError(
      "model",
      `${this.file.fileNames[0] ?? "model"}: ${what} cannot be run`,
      "take another model, or a newer zinc",
    );
  }

  /** Padding rows behind the vocabulary are legal; a token without a row is not. */
  #vocabularySize(): number {
    const rows = this.file.tensor("token_embd.weight")?.dims[1] ?? 0;
    const tokens = this.metadata.strings("tokenizer.ggml.tokens")?.length;
    if (rows === 0) throw this.bad("tensor token_embd.weight is missing or no matrix");
    if (tokens !== undefined && tokens > rows) {
      throw this.bad(`the vocabulary has ${tokens} tokens and the embedding table ${rows} rows`);
    }
    return rows;
  }

  #windowFlags(layerCount: number, period: number): boolean[] {
    const full = this.#full("attention.sliding_window_pattern");
    if (this.metadata.get(full)?.type === "numbers")
      return (this.#list(full, layerCount) ?? []).map((flag) => flag !== 0);
    const every = this.metadata.count(full) ?? period;
    return Array.from({ length: layerCount }, (_unused, i) => every === 0 || i % every < every - 1);
  }

  /** The numbers of an array, or as many times the one number that stands for all. */
  #list(full: string, length: number): number[] | undefined {
    if (this.metadata.get(full)?.type !== "numbers") {
      const value = this.metadata.count(full);
      return value === undefined ? undefined : Array.from({ length }, () => value);
    }
    const values = this.metadata.numbers(full) ?? [];
    if (values.length >= length) return Array.from(values).slice(0, length);
    throw this.bad(`metadata ${full} holds ${values.length} numbers for ${length} layers`);
  }

  #full(key: string): string {
    return `${this.architecture}.${key}`;
  }
}
