/** The notation of GBNF, read into rules; what they mean together is not its business. */

import {
  anyCharacter,
  characterSet,
  isSurrogate,
  listedMax,
  type CharacterRange,
} from "./character-set.ts";

/** A grammar that answers cannot be held to; the line counts from 1. */
export class BadGrammar extends Error {
  override readonly name = "BadGrammar";

  constructor(reason: string, line: number | undefined) {
    super(line === undefined ? `grammar: ${reason}` : `grammar, line ${line}: ${reason}`);
  }
}

export type Element =
  | { readonly type: "text"; readonly text: string }
  /** As the engine takes it. */
  | { readonly type: "set"; readonly written: string }
  | { readonly type: "rule"; readonly name: string }
  | { readonly type: "group"; readonly options: readonly Sequence[] }
  | {
      readonly type: "repeat";
      readonly element: Element;
      readonly min: number;
      /** Undefined for as often as one likes. */
      readonly max: number | undefined;
    };

export type Sequence = readonly Element[];

export interface Rule {
  readonly line: number;
  readonly options: readonly Sequence[];
}

const limits = { characters: 1 << 16, rules: 2000, depth: 64, repeats: 2000 } as const;

const quantifiers: Readonly<Record<string, readonly [number, number | undefined]>> = {
  "*": [0, undefined],
  "+": [1, undefined],
  "?": [0, 1],
};

const namedEscapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

export class GrammarReader {
  readonly #text: string;
  #at = 0;
  /** Up to where lines were counted. */
  #countedTo = 0;
  #lineNumber = 1;

  constructor(text: string) {
    this.#text = text;
  }

  /** By name, in their order. */
  read(): Map<string, Rule> {
    if (this.#text.length > limits.characters) {
      throw new BadGrammar(`it has more than ${limits.characters} characters`, undefined);
    }
    const rules = new Map<string, Rule>();
    for (this.#skip(true); this.#at < this.#text.length; this.#skip(true)) {
      const line = this.#line();
      const name = this.#match(/[A-Za-z][\w-]*/y);
      if (name === undefined) throw this.#wrong("a rule must begin with its name");
      this.#skip(false);
      if (this.#match(/::=/y) === undefined) throw this.#wrong(`::= is missing behind ${name}`);
      if (rules.has(name)) throw this.#wrong(`there are two rules ${name}`);
      this.#skip(true);
      if (rules.size === limits.rules)
        throw this.#wrong(`there are more than ${limits.rules} rules`);
      rules.set(name, { line, options: this.#options(0) });
      if (this.#at < this.#text.length && !/[\r\n]/.test(this.#peek())) {
        throw this.#wrong(`${JSON.stringify(this.#peek())} is not expected here`);
      }
    }
    return rules;
  }

  #options(depth: number): Sequence[] {
    if (depth > limits.depth) throw this.#wrong(`groups are nested more than ${limits.depth} deep`);
    const options = [this.#sequence(depth)];
    while (this.#match(/\|/y) !== undefined) {
      this.#skip(true);
      options.push(this.#sequence(depth));
    }
    return options;
  }

  /** Within a group it may go over lines. */
  #sequence(depth: number): Sequence {
    const elements: Element[] = [];
    for (;;) {
      const element = this.#element(depth);
      if (element === undefined) return elements;
      elements.push(this.#repeated(element));
      this.#skip(depth > 0);
    }
  }

  #element(depth: number): Element | undefined {
    const first = this.#peek();
    if (/[A-Za-z]/.test(first)) {
      return { type: "rule", name: this.#match(/[\w-]+/y) ?? "" };
    }
    if (first === "<" || first === "!") throw this.#wrong("single tokens cannot be asked for");
    if (!'"[(.'.includes(first) || first === "") return undefined;
    this.#at++;
    if (first === '"') return { type: "text", text: this.#characters('"').join("") };
    if (first === "[") return this.#bracketed();
    if (first === ".") return this.#set([anyCharacter]);
    this.#skip(true);
    const options = this.#options(depth + 1);
    if (this.#match(/\)/y) === undefined) throw this.#wrong(") is missing");
    return { type: "group", options };
  }

  /** Whatever stands behind an element and says how often it comes, once or several times. */
  #repeated(element: Element, depth = 0): Element {
    this.#skip(false);
    const sign = this.#match(/[*+?]|\{[^}\n]*\}/y);
    if (sign === undefined) return element;
    const bounds = quantifiers[sign] ?? boundsOf(sign);
    const [min = 0, max] = bounds ?? [];
    if (bounds === undefined || (max !== undefined && max < min)) {
      throw this.#wrong(`${sign} is no number of times`);
    }
    if (Math.max(min, max ?? 0) > limits.repeats) {
      throw this.#wrong(`${sign} is more than ${limits.repeats} times`);
    }
    if (depth > limits.depth) throw this.#wrong("repeats of repeats are too many");
    return this.#repeated({ type: "repeat", element, min, max }, depth + 1);
  }

  #bracketed(): Element {
    const isNegated = this.#match(/\^/y) !== undefined;
    const ranges: CharacterRange[] = [];
    while (this.#peek() !== "]") {
      const low = this.#character();
      const isRange = this.#match(/-(?!\])/y) !== undefined;
      const high = isRange ? this.#character() : low;
      if (codeOf(high) < codeOf(low)) throw this.#wrong(`no character is from ${low} to ${high}`);
      ranges.push([codeOf(low), codeOf(high)]);
    }
    this.#at++;
    if (ranges.length === 0 && !isNegated) throw this.#wrong("[] is no character at all");
    return this.#set(ranges, isNegated);
  }

  #set(ranges: readonly CharacterRange[], isNegated = false): Element {
    const written = characterSet(ranges, isNegated);
    if (written !== undefined) return { type: "set", written };
    throw this.#wrong(
      `a set has more than ${listedMax} characters beyond ASCII; [^\\x01-\\x7f] has them all`,
    );
  }

  #characters(end: string): string[] {
    const characters: string[] = [];
    while (this.#peek() !== end) characters.push(this.#character());
    this.#at++;
    return characters;
  }

  /** One of a literal or a set. */
  #character(): string {
    const first = this.#match(/\\?[^\n]/suy);
    if (first === undefined) throw this.#wrong("a literal or a set has no end on its line");
    if (!first.startsWith("\\")) return first;
    const letter = first.slice(1);
    const digitCount = { x: 2, u: 4, U: 8 }[letter];
    if (digitCount === undefined) {
      const isUnknown = letter === "" || /[A-Za-z0-9]/.test(letter);
      if (isUnknown && namedEscapes[letter] === undefined) {
        throw this.#wrong(`${first} is no character`);
      }
      return namedEscapes[letter] ?? letter;
    }
    const digits = this.#match(new RegExp(`[0-9A-Fa-f]{${digitCount}}`, "y"));
    const number = Number.parseInt(digits ?? "", 16);
    if (!(number > 0 && number <= 0x10ffff) || isSurrogate(number)) {
      throw this.#wrong(`${first}${digits ?? ""} is no character`);
    }
    return String.fromCodePoint(number);
  }

  /** White space and comments, over lines or up to the end of one. */
  #skip(overLines: boolean): void {
    this.#match(overLines ? /(?:\s|#[^\n]*)*/y : /[ \t]*(?:#[^\n]*)?/y);
  }

  #peek(): string {
    return this.#text[this.#at] ?? "";
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #line(): number {
    for (; this.#countedTo < this.#at; this.#countedTo++) {
      if (this.#text[this.#countedTo] === "\n") this.#lineNumber++;
    }
    return this.#lineNumber;
  }

  #wrong(reason: string): BadGrammar {
    return new BadGrammar(reason, this.#line());
  }
}

/** "{2}", "{2,}", "{,3}", "{2,3}" */
function boundsOf(sign: string): readonly [number, number | undefined] | undefined {
  const found = /^\{\s*(\d{1,6})?\s*(,)?\s*(\d{1,6})?\s*\}$/.exec(sign);
  const [, low, comma, high] = found ?? [];
  if (found === null || (low === undefined && high === undefined)) return undefined;
  if (comma === undefined) return [Number(low), Number(low)];
  return [Number(low ?? 0), high === undefined ? undefined : Number(high)];
}

export function codeOf(character: string): number {
  return character.codePointAt(0) ?? 0;
}
