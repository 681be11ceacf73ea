/**
 * Byte-pair encoding: text is cut into pieces, and each piece is built up by a list of merges from
 * single bytes (GPT-2 and most since) or from single characters (Gemma 4).
 */
import type { StringArray } from "../gguf/metadata.ts";
import { bytesOfSpelling, codePointOfByte } from "./byte-alphabet.ts";
import { MergeTable } from "./merge-table.ts";
import { PieceCache } from "./piece-cache.ts";
import { Pretokenizer } from "./pretokenize.ts";
import { spaceMark, spaceWords } from "./space-words.ts";
import type { Family } from "./split-patterns.ts";
import { SymbolMerger } from "./symbol-merger.ts";
import { spacesOfMarks, type TextModel } from "./text-model.ts";
import { Utf8Buffer } from "./utf8-buffer.ts";
import { kinds, type Vocabulary } from "./vocabulary.ts";

export class BytePairModel implements TextModel {
  readonly #vocabulary: Vocabulary;
  readonly #family: Family;
  readonly #unknownId: number | undefined;
  readonly #merges: MergeTable;
  readonly #pretokenizer: Pretokenizer;
  readonly #cache = new PieceCache();
  readonly #piece = new Utf8Buffer();
  readonly #spelled = new Utf8Buffer();
  readonly #merger = new SymbolMerger();
  /** The token of each byte; -1 where the vocabulary has none. */
  readonly #byteIds: Int32Array;

  constructor(
    vocabulary: Vocabulary,
    merges: StringArray,
    family: Family,
    unknownId: number | undefined,
    warn: (message: string) => void,
  ) {
    this.#vocabulary = vocabulary;
    this.#family = family;
    // Byte-level vocabularies have no use for it: all bytes that occur in text are tokens.
    this.#unknownId = family.spelling === "plain" ? unknownId : undefined;
    this.#merges = new MergeTable(merges, vocabulary.table);
    const { broken, of } = this.#merges.brokenInSample();
    if (broken > 0)
      warn(`tokenizer.ggml.merges: ${broken} of ${of} looked at name what is no token`);
    const words = family.spelling === "plain" ? spaceWords(vocabulary.table) : undefined;
    this.#pretokenizer = new Pretokenizer(
      words === undefined ? family.steps : [...family.steps, words],
    );
    this.#byteIds = Int32Array.from({ length: 256 }, (_, byte) => this.#idOfByte(byte) ?? -1);
  }

  encode(text: string, out: number[]): void {
    const plain = this.#family.spelling === "plain";
    const marked = plain ? text.replaceAll(" ", spaceMark) : text;
    for (const piece of this.#pretokenizer.split(marked)) {
      this.#piece.write(piece);
      const { bytes, length } = this.#piece;
      if (this.#cache.append(bytes, length, out)) continue;
      const start = out.length;
      this.#encodePiece(piece, out);
      this.#cache.remember(bytes, length, out, start);
    }
  }

  decode(token: Uint8Array): Uint8Array {
    return this.#family.spelling === "plain" ? spacesOfMarks(token) : bytesOfSpelling(token);
  }

  #idOfByte(byte: number): number | undefined {
    if (this.#family.spelling === "plain") return this.#vocabulary.idOfByte(byte);
    return this.#vocabulary.idOf(String.fromCharCode(codePointOfByte[byte] ?? 0));
  }

  #encodePiece(piece: string, out: number[]): void {
    const whole = this.#wholePiece(piece);
    if (whole >= 0) {
      out.push(whole);
      return;
    }
    const { bytes, length } = this.#piece;
    const merger = this.#merger;
    merger.reset(length);
    if (this.#family.spelling === "bytes") {
      for (let at = 0; at < length; at++)
        merger.add(this.#byteIds[bytes[at] as number] as number, at);
    } else {
      for (let at = 0, end = 0; at < length; at = end) {
        end = this.#piece.characterEnd(at);
        merger.add(this.#vocabulary.table.find(bytes, at, end), at);
      }
    }
    merger.merge(this.#merges, length);
    for (let i = 0; i < merger.count; i++) this.#emit(i, out);
  }

  /** A character without a token becomes its bytes, or the unknown token if they have none. */
  #emit(symbol: number, out: number[]): void {
    const id = this.#merger.ids[symbol] as number;
    if (id >= 0) {
      out.push(id);
      return;
    }
    const from = out.length;
    const end = this.#merger.starts[symbol + 1] as number;
    for (let at = this.#merger.starts[symbol] as number; at < end; at++) {
      const byteId = this.#byteIds[this.#piece.bytes[at] as number] as number;
      if (byteId >= 0) out.push(byteId);
    }
    if (out.length === from && this.#unknownId !== undefined) out.push(this.#unknownId);
  }

  /** The token of a piece that is not to be built up from merges, or -1. */
  #wholePiece(piece: string): number {
    const { wholeNewlines, ignoreMerges, spelling } = this.#family;
    const newlines = wholeNewlines === true && piece.startsWith("\n");
    if (ignoreMerges !== true && !newlines) return -1;
    const whole = spelling === "bytes" ? this.#spell() : this.#piece;
    const id = this.#vocabulary.table.find(whole.bytes, 0, whole.length);
    return id >= 0 && this.#vocabulary.kinds[id] !== kinds.control ? id : -1;
  }

  /** The piece in the alphabet of the vocabulary. */
  #spell(): Utf8Buffer {
    const { bytes, length } = this.#piece;
    let spelling = "";
    for (let at = 0; at < length; at++) {
      spelling += String.fromCharCode(codePointOfByte[bytes[at] as number] as number);
    }
    this.#spelled.write(spelling);
    return this.#spelled;
  }
}
