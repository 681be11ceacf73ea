/**
 * Vocabularies for the tests: small ones made here, and real ones from `../shared` where it exists.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readHeader } from "../../src/gguf/gguf.ts";
import { Metadata, type GgufValue, type StringArray } from "../../src/gguf/metadata.ts";
import { MemorySource } from "../../src/gguf/source.ts";
import { createTokenizer, type Tokenizer } from "../../src/tokenizer/tokenizer.ts";

const shared = join(import.meta.dir, "../../../shared");

/** Whether the real vocabularies are there. */
export const hasShared = existsSync(join(shared, "vectors"));

export interface VectorCase {
  readonly text: string;
  readonly ids: number[];
  readonly special: number[];
}

export interface GoldenCase {
  readonly text: string;
  readonly tokens: number[];
}

/** The texts of `../shared/vectors` with the ids that llama.cpp makes of them. */
export function readVectors(name: string): VectorCase[] {
  return JSON.parse(readFileSync(join(shared, "vectors", `${name}.json`), "utf8"));
}

/** Texts with the ids that the library which trained the models in `../shared/models` makes. */
export function readGolden(pre: string): GoldenCase[] {
  return JSON.parse(readFileSync(join(shared, "models/golden.json"), "utf8")).tokenizer[pre];
}

const loaded = new Map<string, Metadata>();

/** The metadata of a vocabulary in `../shared/vectors`. */
export function vectorMetadata(name: string): Metadata {
  let metadata = loaded.get(name);
  if (metadata === undefined) {
    const packed = readFileSync(join(shared, "vectors", `${name}.gguf.zst`));
    metadata = readHeader(new MemorySource(name, Bun.zstdDecompressSync(packed))).metadata;
    loaded.set(name, metadata);
  }
  return metadata;
}

/** The metadata of a model in `../shared/models`. */
export function modelMetadata(name: string): Metadata {
  const bytes = readFileSync(join(shared, "models", `${name}.gguf`));
  return readHeader(new MemorySource(name, bytes)).metadata;
}

/** Another `tokenizer.ggml.pre`, or other values, on the same vocabulary. */
export function changed(metadata: Metadata, changes: Record<string, GgufValue>): Metadata {
  return new Metadata(new Map([...metadata.entries(), ...Object.entries(changes)]));
}

/** A tokenizer that must exist and must not warn. */
export function quietTokenizer(metadata: Metadata): Tokenizer {
  const tokenizer = createTokenizer(metadata, (message) => {
    throw new Error(`unexpected warning: ${message}`);
  });
  if (tokenizer === undefined) throw new Error("the file has no tokenizer");
  return tokenizer;
}

/** A tokenizer and what it warned of. */
export function tokenizerWithWarnings(metadata: Metadata): [Tokenizer, string[]] {
  const warnings: string[] = [];
  const tokenizer = createTokenizer(metadata, (message) => warnings.push(message));
  if (tokenizer === undefined) throw new Error("the file has no tokenizer");
  return [tokenizer, warnings];
}

export const text = (value: string): GgufValue => ({ type: "string", value });
export const flag = (value: boolean): GgufValue => ({ type: "bool", value });
export const count = (value: number): GgufValue => ({ type: "u32", value });

export function texts(values: readonly (string | Uint8Array)[]): GgufValue {
  return { type: "strings", value: strings(values) };
}

export function strings(values: readonly (string | Uint8Array)[]): StringArray {
  const bytes = values.map((v) => (typeof v === "string" ? new TextEncoder().encode(v) : v));
  return {
    length: values.length,
    at: (index) => new TextDecoder().decode(bytes[index]),
    bytesAt: (index) => bytes[index] ?? new Uint8Array(0),
  };
}

export function numbers(elementType: "i32" | "f32", values: readonly number[]): GgufValue {
  return { type: "numbers", value: { elementType, values } };
}

/** A token of a small vocabulary: its spelling, or its spelling, kind and score. */
export type Entry = string | readonly [spelling: string, kind: number, score?: number];

export const kind = { normal: 1, unknown: 2, control: 3, user: 4, unused: 5, byte: 6 } as const;

/** A vocabulary of a few tokens. */
export function tiny(
  model: string,
  entries: readonly Entry[],
  more: Record<string, GgufValue> = {},
): Metadata {
  const rows = entries.map((entry) => (typeof entry === "string" ? ([entry, 1] as const) : entry));
  return new Metadata(
    new Map(
      Object.entries({
        "tokenizer.ggml.model": text(model),
        "tokenizer.ggml.tokens": texts(rows.map(([spelling]) => spelling)),
        "tokenizer.ggml.token_type": numbers(
          "i32",
          rows.map(([, type]) => type),
        ),
        "tokenizer.ggml.scores": numbers(
          "f32",
          rows.map(([, , score]) => score ?? 0),
        ),
        ...more,
      }),
    ),
  );
}

/** The 256 single bytes as GPT-2 vocabularies spell them; the id of each is the byte. */
export const byteAlphabet: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const printable = (b: number) => (b >= 33 && b <= 126) || (b >= 161 && b !== 173);
  if (printable(byte)) return String.fromCharCode(byte);
  let rank = 0;
  for (let b = 0; b < byte; b++) if (!printable(b)) rank++;
  return String.fromCharCode(256 + rank);
});

/** The 256 byte tokens of SentencePiece vocabularies. */
export const byteTokens: readonly Entry[] = Array.from({ length: 256 }, (_, byte) => {
  return [`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`, kind.byte] as const;
});

/** A byte-level vocabulary of the single bytes, the results of the merges, and more tokens. */
export function tinyBpe(
  merges: readonly string[],
  entries: readonly Entry[] = [],
  more: Record<string, GgufValue> = {},
): Metadata {
  const joined = merges.map((merge) => merge.replace(" ", ""));
  return tiny("gpt2", [...byteAlphabet, ...joined, ...entries], {
    "tokenizer.ggml.pre": text("gpt-2"),
    "tokenizer.ggml.merges": texts(merges),
    ...more,
  });
}

/** A SentencePiece vocabulary: unknown, BOS, EOS, the bytes from id 3 on, then `entries`. */
export function tinySpm(entries: readonly Entry[], more: Record<string, GgufValue> = {}): Metadata {
  const first: Entry[] = [
    ["<unk>", kind.unknown],
    ["<s>", kind.control],
    ["</s>", kind.control],
  ];
  return tiny("llama", [...first, ...byteTokens, ...entries], more);
}
