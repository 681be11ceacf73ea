/** The tokens of a model as its file lists them: bytes, kind and score of each id. */
import { UserError } from "../errors.ts";
import type { Metadata } from "../gguf/metadata.ts";
import { rankLimit } from "./symbol-merger.ts";
import { TokenTable } from "./token-table.ts";

/** `tokenizer.ggml.token_type`. */
export const kinds = {
  normal: 1,
  /** Stands for text that the vocabulary cannot spell. */
  unknown: 2,
  /** Structure, such as the end of a turn; never part of plain text. */
  control: 3,
  /** Plain text that is always this one token. */
  userDefined: 4,
  unused: 5,
  /** One byte, spelled `<0x0A>`. */
  byte: 6,
} as const;

export class Vocabulary {
  readonly table: TokenTable;
  readonly kinds: Uint8Array;
  /** Empty when the file has none. */
  readonly scores: ArrayLike<number>;

  constructor(metadata: Metadata) {
    const tokens = metadata.strings("tokenizer.ggml.tokens");
    if (tokens === undefined || tokens.length === 0) {
      throw new UserError(
        "model",
        "metadata tokenizer.ggml.tokens is missing: the file holds no vocabulary",
      );
    }
    if (tokens.length >= rankLimit) {
      throw new UserError(
        "model",
        `tokenizer.ggml.tokens has ${tokens.length} entries, more than ${rankLimit}`,
      );
    }
    this.table = new TokenTable(tokens);
    this.kinds = new Uint8Array(tokens.length).fill(kinds.normal);
    const types = perToken(metadata, "tokenizer.ggml.token_type", tokens.length);
    for (let id = 0; id < types.length; id++) this.kinds[id] = types[id] ?? kinds.normal;
    this.scores = perToken(metadata, "tokenizer.ggml.scores", tokens.length);
  }

  get size(): number {
    return this.table.count;
  }

  /** The lowest id of the token with exactly this text. */
  idOf(text: string): number | undefined {
    const bytes = new TextEncoder().encode(text);
    const id = this.table.find(bytes, 0, bytes.length);
    return id < 0 ? undefined : id;
  }

  /** The token of one byte, `<0x0A>`. */
  idOfByte(byte: number): number | undefined {
    return this.idOf(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
  }

  /** The token as its file spells it. */
  text(id: number): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.table.bytesOf(id));
  }
}

function perToken(metadata: Metadata, key: string, count: number): ArrayLike<number> {
  const values = metadata.numbers(key);
  if (values === undefined) return [];
  if (values.length < count) {
    throw new UserError(
      "model",
      `metadata ${key} has ${values.length} entries for ${count} tokens`,
    );
  }
  return values;
}
