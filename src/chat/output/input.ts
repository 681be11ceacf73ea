/**
 * An answer as its parsers read it, while it comes: characters, and marks such as `<tool_call>`.
 *
 * A parser is a generator that yields where it has to wait for more. So it reads like the grammar
 * of what it parses, and cannot tell how the answer was cut into pieces.
 */
import { partialLength } from "../partial-match.ts";

/** Yields nothing; what it waits for comes through the input. */
export type Reading<T = void> = Generator<void, T, void>;

/** The answer does not follow the syntax that it began with. */
export class Malformed extends Error {
  override readonly name = "Malformed";
}

/**
 * One unit is a UTF-16 unit of the text, or the whole spelling of a mark that came as one token:
 * marks are longer than one.
 */
type Unit = string;

export class AnswerInput {
  readonly #tokens: ReadonlySet<string>;
  readonly #hidden: Set<string>;
  /** Pieces of text, or marks. */
  readonly #queue: { readonly text: string; readonly isMark: boolean; at: number }[] = [];
  #isEnded = false;
  #record = "";
  /** The first half of a character outside the first plane. */
  #half = "";

  /**
   * `tokens` are the marks that come as one token: spelled out by others they are plain text.
   * Those that are `hidden` are never shown.
   */
  constructor(tokens: ReadonlySet<string>, hidden: ReadonlySet<string>) {
    this.#tokens = tokens;
    this.#hidden = new Set(hidden);
  }

  push(piece: string): void {
    const text = this.#half + piece;
    const end = /[\ud800-\udbff]$/.test(text) ? text.length - 1 : text.length;
    this.#half = text.slice(end);
    if (end > 0) this.#queue.push({ text: text.slice(0, end), isMark: false, at: 0 });
  }

  pushMark(mark: string): void {
    this.#pushHalf();
    this.#queue.push({ text: mark, isMark: true, at: 0 });
  }

  end(): void {
    this.#pushHalf();
    this.#isEnded = true;
  }

  /** From here on everything that is read is recorded, behind what stands here already. */
  startRecord(before = ""): void {
    this.#record = before;
  }

  /** What was read since then, marks included. */
  get record(): string {
    return this.#record;
  }

  /** The next unit, which stays; undefined at the end of the answer. */
  *peek(): Reading<Unit | undefined> {
    for (;;) {
      const first = this.#queue[0];
      if (first !== undefined) return first.isMark ? first.text : first.text[first.at];
      if (this.#isEnded) return undefined;
      yield;
    }
  }

  *next(): Reading<Unit | undefined> {
    const unit = yield* this.peek();
    const first = this.#queue[0];
    if (unit === undefined || first === undefined) return undefined;
    first.at += unit.length;
    if (first.at >= first.text.length) this.#queue.shift();
    this.#record += unit;
    return unit;
  }

  /** Puts back what was read last, which held no mark that came as a token. */
  back(text: string): void {
    if (text === "") return;
    this.#queue.unshift({ text, isMark: false, at: 0 });
    this.#record = this.#record.slice(0, this.#record.length - text.length);
  }

  /** Which of some strings stands here, if any; it is read then, and nothing else is. */
  *at(strings: readonly string[]): Reading<string | undefined> {
    const spelled = strings.filter((string) => !this.#tokens.has(string));
    for (let seen = ""; ;) {
      const unit = yield* this.peek();
      if (unit === undefined || unit.length > 1) {
        if (seen === "" && unit !== undefined && strings.includes(unit)) return yield* this.next();
        this.back(seen);
        return undefined;
      }
      seen += unit;
      yield* this.next();
      if (spelled.includes(seen)) return seen;
      if (spelled.some((string) => string.startsWith(seen))) continue;
      this.back(seen);
      return undefined;
    }
  }

  /**
   * Reads on to the first of some strings, and returns it, or undefined at the end of the answer.
   * The text before it is handed over as soon as it is certain. Of strings that end at the same
   * place the longest counts. Hidden marks are left out of the text, or not.
   */
  *until(
    strings: readonly string[],
    onText: (text: string) => void,
    hidden: "left out" | "kept" = "left out",
  ): Reading<string | undefined> {
    const spelled = strings
      .filter((string) => !this.#tokens.has(string))
      .toSorted((a, b) => b.length - a.length);
    for (let held = ""; ;) {
      const unit = yield* this.next();
      if (unit === undefined || unit.length > 1) {
        if (held !== "") onText(held);
        if (unit === undefined || strings.includes(unit)) return unit;
        held = "";
        if (hidden === "kept" || !this.isHidden(unit)) onText(unit);
        continue;
      }
      held += unit;
      const found = spelled.find((string) => held.endsWith(string));
      const end = held.length - (found?.length ?? partialLength(held, spelled));
      if (end > 0) onText(held.slice(0, end));
      if (found !== undefined) return found;
      held = held.slice(end);
    }
  }

  /** Reads white space and returns what stands behind it, which stays. */
  *skipSpace(): Reading<Unit | undefined> {
    for (;;) {
      const unit = yield* this.peek();
      if (unit === undefined || !isSpace(unit)) return unit;
      yield* this.next();
    }
  }

  /** Reads exactly this. */
  *expect(string: string): Reading {
    if ((yield* this.at([string])) === undefined) throw new Malformed(`expected ${string}`);
  }

  /** A mark that is structure and no text, as the tokenizer sees it. */
  isHidden(mark: string): boolean {
    return this.#hidden.has(mark);
  }

  /** What these marks stand around is no structure after all: from here on they are text. */
  show(marks: readonly string[]): void {
    for (const mark of marks) this.#hidden.delete(mark);
  }

  #pushHalf(): void {
    if (this.#half !== "") this.#queue.push({ text: this.#half, isMark: false, at: 0 });
    this.#half = "";
  }
}

export function isSpace(unit: string): boolean {
  return unit.length === 1 && /\s/.test(unit);
}
