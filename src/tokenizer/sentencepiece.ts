/**
 * SentencePiece as Llama 2 and Gemma use it: neighbouring characters are joined whenever the result
 * is a token, best score first. What the vocabulary cannot spell becomes tokens of single bytes.
 */
import { UserError } from "../errors.ts";
import { PieceCache } from "./piece-cache.ts";
import { Pretokenizer } from "./pretokenize.ts";
import { spaceMark, spaceWords } from "./space-words.ts";
import { SymbolMerger, type MergeRules } from "./symbol-merger.ts";
import { spacesOfMarks, type TextModel } from "./text-model.ts";
import { Utf8Buffer } from "./utf8-buffer.ts";
import { kinds, type Vocabulary } from "./vocabulary.ts";

export class SentencePieceModel implements TextModel, MergeRules {
  readonly #vocabulary: Vocabulary;
  readonly #addSpacePrefix: boolean;
  readonly #unknownId: number | undefined;
  readonly #words: Pretokenizer;
  /** Tokens of higher score have a lower rank; equal scores share one. */
  readonly #ranks: Uint32Array;
  readonly #cache = new PieceCache();
  readonly #piece = new Utf8Buffer();
  readonly #merger = new SymbolMerger();
  readonly #byteIds: Int32Array;

  constructor(vocabulary: Vocabulary, addSpacePrefix: boolean, unknownId: number | undefined) {
    if (vocabulary.scores.length === 0) {
      throw new UserError(
        "model",
        "metadata tokenizer.ggml.scores is missing, which a llama tokenizer needs",
      );
    }
    this.#vocabulary = vocabulary;
    this.#addSpacePrefix = addSpacePrefix;
    this.#unknownId = unknownId;
    const words = spaceWords(vocabulary.table);
    this.#words = new Pretokenizer(words === undefined ? [] : [words]);
    this.#ranks = ranksOf(vocabulary.scores, vocabulary.size);
    this.#byteIds = Int32Array.from({ length: 256 }, (_, byte) => vocabulary.idOfByte(byte) ?? -1);
  }

  encode(text: string, out: number[], first: boolean): void {
    const marked = text.replaceAll(" ", spaceMark);
    const prefixed = first && this.#addSpacePrefix ? spaceMark + marked : marked;
    for (const word of this.#words.split(prefixed)) {
      this.#piece.write(word);
      const { bytes, length } = this.#piece;
      if (this.#cache.append(bytes, length, out)) continue;
      const start = out.length;
      this.#encodeWord(out);
      this.#cache.remember(bytes, length, out, start);
    }
  }

  decode(token: Uint8Array): Uint8Array {
    return spacesOfMarks(token);
  }

  // --- the rules: a token may arise from any two neighbours that spell it ---

  find(_left: number, _right: number, start: number, end: number): number {
    return this.#mergeable(start, end);
  }

  rank(token: number): number {
    return this.#ranks[token] as number;
  }

  token(token: number): number {
    return token;
  }

  // --- internal ---

  #encodeWord(out: number[]): void {
    const { bytes, length } = this.#piece;
    const merger = this.#merger;
    merger.reset(length);
    for (let at = 0, end = 0; at < length; at = end) {
      end = this.#piece.characterEnd(at);
      merger.add(this.#mergeable(at, end), at);
    }
    merger.merge(this, length);
    for (let i = 0; i < merger.count; i++) {
      const id = merger.ids[i] as number;
      if (id >= 0) out.push(id);
      else this.#emitBytes(bytes, merger.starts[i] as number, merger.starts[i + 1] as number, out);
    }
  }

  /** The token of a range of the word that plain text may become, or -1. */
  #mergeable(start: number, end: number): number {
    const { table } = this.#vocabulary;
    if (end - start > table.longestBytes) return -1;
    const id = table.find(this.#piece.bytes, start, end);
    if (id < 0) return -1;
    const kind = this.#vocabulary.kinds[id];
    return kind === kinds.control || kind === kinds.byte || kind === kinds.unknown ? -1 : id;
  }

  #emitBytes(bytes: Uint8Array, start: number, end: number, out: number[]): void {
    const from = out.length;
    for (let at = start; at < end; at++) {
      const id = this.#byteIds[bytes[at] as number] as number;
      if (id >= 0) {
        out.push(id);
        continue;
      }
      out.length = from;
      if (this.#unknownId !== undefined) out.push(this.#unknownId);
      return;
    }
  }
}

function ranksOf(scores: ArrayLike<number>, count: number): Uint32Array {
  const descending = new Float64Array(count);
  for (let id = 0; id < count; id++) descending[id] = -(scores[id] ?? 0);
  const order = descending.slice().sort();
  const ranks = new Uint32Array(count);
  for (let id = 0; id < count; id++) ranks[id] = firstNotBelow(order, descending[id] as number);
  return ranks;
}

/** The first place in an ascending list whose value is not below `value`. */
function firstNotBelow(order: Float64Array, value: number): number {
  let low = 0;
  let high = order.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((order[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
