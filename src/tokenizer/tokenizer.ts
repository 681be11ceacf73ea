/** Text to token ids and back, as the model file says. BOS and EOS are the caller's to add. */
import { UserError } from "../errors.ts";
import type { Metadata } from "../gguf/metadata.ts";
import { BytePairModel } from "./bpe.ts";
import { familyOf } from "./pretokenize.ts";
import { SentencePieceModel } from "./sentencepiece.ts";
import { SpecialTokens, type Segment, type Strip } from "./special-tokens.ts";
import { fallback, gemma4, type Family } from "./split-patterns.ts";
import { StreamDecoder } from "./stream-decoder.ts";
import type { TextModel } from "./text-model.ts";
import { readRoles, type RoleDefaults, type TokenRoles } from "./token-roles.ts";
import { kinds, Vocabulary } from "./vocabulary.ts";

export interface Tokenizer {
  readonly vocabSize: number;
  /** Whether a prompt is to begin with `bosId`. Never true without one. */
  readonly addBos: boolean;
  /** Whether a prompt is to end with `eosId`. Never true without one. */
  readonly addEos: boolean;
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  /** The tokens that end an answer. */
  readonly endOfGeneration: ReadonlySet<number>;
  readonly preTokenizer: PreTokenizer;

  /**
   * The ids of a text. With `special`, control tokens are found where they stand literally;
   * without, they are plain text like any other, and only user-defined tokens are found. Segments
   * are one text of which each part says for itself: what comes from a template is special, what
   * comes from a user is not.
   */
  encode(input: string | readonly Segment[], options?: EncodeOptions): number[];
  /** The text of ids from its start on. Control tokens are left out unless `special`. */
  decode(ids: Iterable<number>, options?: DecodeOptions): string;
  /** For ids that come one by one and continue a text, so that a space at the start counts. */
  decoder(options?: DecodeOptions): StreamDecoder;

  /**
   * What a token adds to the text: not always whole characters. Empty for an id outside the
   * vocabulary.
   */
  tokenBytes(id: number): Uint8Array;
  /** The token as the file spells it. */
  tokenText(id: number): string;
  /** The id of the token that the file spells so. */
  idOf(text: string): number | undefined;
  /** Structure, not text: `decode` leaves it out unless told otherwise. */
  isControl(id: number): boolean;
  isEndOfGeneration(id: number): boolean;
}

export interface EncodeOptions {
  /** Applies to a string, and to segments that do not say for themselves. */
  readonly special?: boolean;
}

export interface DecodeOptions {
  /** Show control tokens as they are spelled. */
  readonly special?: boolean;
}

/** The rule by which text is cut before merging. */
export interface PreTokenizer {
  /** As the file names it; `undefined` where the file names none. */
  readonly name: string | undefined;
  /**
   * False if another rule stands in for it, and ids may differ from those the model was trained
   * with.
   */
  readonly known: boolean;
}

type Warn = (message: string) => void;

/**
 * The tokenizer of a model file; `undefined` if the file says that it has none, so that only ids
 * can be fed. Throws a `UserError` for a vocabulary that is missing, broken or of an unknown kind.
 */
export function createTokenizer(metadata: Metadata, warn: Warn): Tokenizer | undefined {
  const name = metadata.string("tokenizer.ggml.model");
  if (name === "none" || name === "no_vocab") return undefined;
  if (name === undefined) {
    throw new UserError(
      "model",
      "metadata tokenizer.ggml.model is missing: the file holds no tokenizer",
    );
  }
  const rows: Readonly<Record<string, SchemeReader>> = schemes;
  const read = Object.hasOwn(rows, name) ? rows[name] : undefined;
  if (read === undefined) {
    const known = Object.keys(schemes).join(", ");
    throw new UserError(
      "model",
      `tokenizer.ggml.model ${name} is not supported`,
      `supported are ${known}`,
    );
  }
  const vocabulary = new Vocabulary(metadata);
  return new GgufTokenizer(metadata, vocabulary, read(metadata, vocabulary, warn));
}

type SchemeReader = (metadata: Metadata, vocabulary: Vocabulary, warn: Warn) => Scheme;

/** What each value of `tokenizer.ggml.model` means. */
const schemes = {
  gpt2(metadata, vocabulary, warn) {
    const name = metadata.string("tokenizer.ggml.pre");
    const family = name === undefined ? undefined : familyOf(name);
    if (family === undefined) {
      const problem = name === undefined ? "is missing" : `${name} is unknown`;
      warn(
        `metadata tokenizer.ggml.pre ${problem}: text is cut by a default rule, ` +
          "so ids may differ from those that the model was trained with",
      );
    }
    return bytePair(
      metadata,
      vocabulary,
      family ?? fallback,
      { name, known: family !== undefined },
      warn,
    );
  },
  gemma4(metadata, vocabulary, warn) {
    return bytePair(metadata, vocabulary, gemma4, { name: "gemma4", known: true }, warn);
  },
  llama(metadata, vocabulary, warn) {
    const defaults: RoleDefaults = { bosId: 1, eosId: 2, unknownId: 0, addBos: true };
    const roles = readRoles(metadata, vocabulary, defaults, warn);
    const addsSpace = metadata.boolean("tokenizer.ggml.add_space_prefix") ?? true;
    const model = new SentencePieceModel(vocabulary, addsSpace, roles.unknownId);
    return { model, roles, addsSpace, preTokenizer: { name: undefined, known: true } };
  },
} as const satisfies Record<string, SchemeReader>;

function bytePair(
  metadata: Metadata,
  vocabulary: Vocabulary,
  family: Family,
  preTokenizer: PreTokenizer,
  warn: Warn,
): Scheme {
  const merges = metadata.strings("tokenizer.ggml.merges");
  if (merges === undefined) {
    throw new UserError(
      "model",
      "metadata tokenizer.ggml.merges is missing, which this tokenizer needs",
    );
  }
  // Files of Gemma 4 say that BOS is not added, and the model is lost without it.
  const defaults: RoleDefaults = { addBos: family.addBos === true, forceBos: family === gemma4 };
  const roles = readRoles(metadata, vocabulary, defaults, warn);
  const model = new BytePairModel(vocabulary, merges, family, roles.unknownId, warn);
  return { model, roles, preTokenizer, addsSpace: false };
}

/** What the value of `tokenizer.ggml.model` decides. */
interface Scheme {
  readonly model: TextModel;
  readonly roles: TokenRoles;
  readonly preTokenizer: PreTokenizer;
  /** Encoding puts a space before the text, so decoding takes one away. */
  readonly addsSpace: boolean;
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
const noBytes = new Uint8Array(0);

class GgufTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly addBos: boolean;
  readonly addEos: boolean;
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  readonly endOfGeneration: ReadonlySet<number>;
  readonly preTokenizer: PreTokenizer;
  readonly #vocabulary: Vocabulary;
  readonly #scheme: Scheme;
  readonly #specialTokens: SpecialTokens;

  constructor(metadata: Metadata, vocabulary: Vocabulary, scheme: Scheme) {
    const { roles } = scheme;
    this.vocabSize = vocabulary.size;
    this.addBos = roles.addBos;
    this.addEos = roles.addEos;
    this.bosId = roles.bosId;
    this.eosId = roles.eosId;
    this.endOfGeneration = roles.endOfGeneration;
    this.preTokenizer = scheme.preTokenizer;
    this.#vocabulary = vocabulary;
    this.#scheme = scheme;
    this.#specialTokens = new SpecialTokens(vocabulary, stripRule(metadata));
  }

  encode(input: string | readonly Segment[], options: EncodeOptions = {}): number[] {
    const { special = false } = options;
    const segments = typeof input === "string" ? [{ text: input }] : input;
    const fragments = this.#specialTokens.partition(
      // A lone surrogate cannot be spelled; it counts as U+FFFD from the start.
      segments.map((segment) => ({
        text: segment.text.toWellFormed(),
        special: segment.special ?? special,
      })),
    );
    const ids: number[] = [];
    let first = true;
    for (const fragment of fragments) {
      first = typeof fragment === "number" || first;
      if (typeof fragment === "number") ids.push(fragment);
      else {
        this.#scheme.model.encode(fragment, ids, first);
        first = false;
      }
    }
    return ids;
  }

  decode(ids: Iterable<number>, options: DecodeOptions = {}): string {
    let bytes = new Uint8Array(1024);
    let length = 0;
    for (const id of ids) {
      const token = this.#shownBytes(id, options);
      if (length + token.length > bytes.length) {
        const larger = new Uint8Array((length + token.length) * 2);
        larger.set(bytes);
        bytes = larger;
      }
      bytes.set(token, length);
      length += token.length;
    }
    const start = this.#scheme.addsSpace && bytes[0] === 0x20 ? 1 : 0;
    return utf8.decode(bytes.subarray(start, length));
  }

  decoder(options: DecodeOptions = {}): StreamDecoder {
    return new StreamDecoder((id) => this.#shownBytes(id, options));
  }

  tokenBytes(id: number): Uint8Array {
    const bytes = this.#vocabulary.table.bytesOf(id);
    switch (this.#vocabulary.kinds[id]) {
      case kinds.control:
      case kinds.unknown:
      case kinds.userDefined:
        return bytes;
      case kinds.byte:
        return byteOf(this.tokenText(id)) ?? bytes;
      default:
        return this.#scheme.model.decode(bytes);
    }
  }

  tokenText(id: number): string {
    return this.#vocabulary.text(id);
  }

  idOf(text: string): number | undefined {
    return this.#vocabulary.idOf(text);
  }

  isControl(id: number): boolean {
    const kind = this.#vocabulary.kinds[id];
    if (this.#scheme.roles.shown.has(id)) return false;
    return kind === kinds.control || kind === kinds.unknown || kind === kinds.unused;
  }

  isEndOfGeneration(id: number): boolean {
    return this.endOfGeneration.has(id);
  }

  #shownBytes(id: number, { special = false }: DecodeOptions): Uint8Array {
    return special || !this.isControl(id) ? this.tokenBytes(id) : noBytes;
  }
}

/** The byte of a token that is spelled `<0x0A>`. */
function byteOf(text: string): Uint8Array | undefined {
  const digits = /^<0x([0-9A-Fa-f]{2})>$/.exec(text)?.[1];
  return digits === undefined ? undefined : Uint8Array.of(Number.parseInt(digits, 16));
}

/**
 * Which special tokens swallow the white space beside them. GGUF files do not say, so it goes by
 * the model's name, as in llama.cpp.
 */
function stripRule(metadata: Metadata): (id: number, text: string) => Strip {
  const name = (metadata.string("general.name") ?? "").toLowerCase();
  const pre = metadata.string("tokenizer.ggml.pre") ?? "";
  if (/^jina-v2-(de|es|code)$/.test(pre)) {
    return (_id, text) => (text === "<mask>" ? "left" : "none");
  }
  if (name.includes("phi-3") || name.includes("phi3")) {
    const exact = new Set(["<unk>", "<s>", "<|endoftext|>"]);
    return (_id, text) => (exact.has(text) ? "none" : "right");
  }
  return () => "none";
}
