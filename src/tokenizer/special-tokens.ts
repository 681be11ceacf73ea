/** Finds the tokens in a text that stand there literally, before anything else is tokenized. */
import { kinds, type Vocabulary } from "./vocabulary.ts";

/** A part of the text to encode; `special` says that control tokens count in it. */
export interface Segment {
  readonly text: string;
  readonly special?: boolean;
}

/** A token, or text without any. */
export type Fragment = number | string;

interface SpecialToken {
  readonly id: number;
  readonly text: string;
  readonly byteCount: number;
  /** Found only where control tokens count. */
  readonly control: boolean;
  readonly strip: Strip;
}

/** On which side a token swallows the white space beside it. */
export type Strip = "none" | "left" | "right";

/** A range of the whole text, or a token. */
type Part = { readonly start: number; readonly end: number; readonly special: boolean } | number;

interface Node {
  token: SpecialToken | undefined;
  readonly next: Map<number, Node>;
}

export class SpecialTokens {
  readonly #root: Node = { token: undefined, next: new Map() };

  constructor(vocabulary: Vocabulary, stripOf: (id: number, text: string) => Strip) {
    for (let id = 0; id < vocabulary.size; id++) {
      const kind = vocabulary.kinds[id];
      if (kind !== kinds.control && kind !== kinds.userDefined && kind !== kinds.unknown) continue;
      const text = vocabulary.text(id);
      if (text === "" || vocabulary.idOf(text) !== id) continue;
      const byteCount = vocabulary.table.bytesOf(id).length;
      this.#insert({
        id,
        text,
        byteCount,
        control: kind !== kinds.userDefined,
        strip: stripOf(id, text),
      });
    }
  }

  /**
   * Cuts out the tokens, the longest first wherever they stand. No token reaches across segments.
   */
  partition(segments: readonly Segment[]): Fragment[] {
    const text = segments.map((segment) => segment.text).join("");
    const found = new Set<SpecialToken>();
    let parts: Part[] = [];
    let start = 0;
    for (const segment of segments) {
      const special = segment.special === true;
      this.#collect(segment.text, special, found);
      if (segment.text !== "") parts.push({ start, end: start + segment.text.length, special });
      start += segment.text.length;
    }
    for (const token of [...found].sort((a, b) => b.byteCount - a.byteCount || a.id - b.id)) {
      parts = cutOut(token, text, parts);
    }
    return fragments(text, parts);
  }

  #insert(token: SpecialToken): void {
    let node = this.#root;
    for (let i = 0; i < token.text.length; i++) {
      const unit = token.text.charCodeAt(i);
      let next = node.next.get(unit);
      if (next === undefined) {
        next = { token: undefined, next: new Map() };
        node.next.set(unit, next);
      }
      node = next;
    }
    node.token = token;
  }

  /** Adds the tokens that occur anywhere in the text: of thousands, mostly none or a few. */
  #collect(text: string, special: boolean, found: Set<SpecialToken>): void {
    for (let start = 0; start < text.length; start++) {
      let node = this.#root.next.get(text.charCodeAt(start));
      for (let at = start + 1; node !== undefined; at++) {
        if (node.token !== undefined && (special || !node.token.control)) found.add(node.token);
        node = at < text.length ? node.next.get(text.charCodeAt(at)) : undefined;
      }
    }
  }
}

/** Replaces each occurrence of a token within a range by the token. */
function cutOut(token: SpecialToken, text: string, parts: readonly Part[]): Part[] {
  const out: Part[] = [];
  let swallowed = -1;
  for (const part of parts) {
    if (typeof part === "number") {
      out.push(part);
      continue;
    }
    let { start } = part;
    // Space that the token before swallowed may reach into the next segment.
    if (swallowed === start) start = swallowed = skipSpace(text, start, part.end);
    if (part.special || !token.control) {
      const range = text.slice(0, part.end);
      for (
        let at = range.indexOf(token.text, start);
        at >= 0;
        at = range.indexOf(token.text, start)
      ) {
        const end = token.strip === "left" ? trimSpace(text, start, at) : at;
        if (end > start) out.push({ start, end, special: part.special });
        out.push(token.id);
        start = at + token.text.length;
        if (token.strip === "right") start = swallowed = skipSpace(text, start, part.end);
      }
    }
    if (start < part.end) out.push({ start, end: part.end, special: part.special });
  }
  return out;
}

/** Text on both sides of a border between segments is one stretch of text to the model. */
function fragments(text: string, parts: readonly Part[]): Fragment[] {
  const out: Fragment[] = [];
  let from = -1;
  let to = -1;
  for (const part of parts) {
    if (typeof part !== "number" && part.start === to) {
      to = part.end;
      continue;
    }
    if (from >= 0) out.push(text.slice(from, to));
    from = -1;
    to = -1;
    if (typeof part === "number") out.push(part);
    else ({ start: from, end: to } = part);
  }
  if (from >= 0) out.push(text.slice(from, to));
  return out;
}

function skipSpace(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && isSpace(text.charCodeAt(at))) at++;
  return at;
}

function trimSpace(text: string, start: number, from: number): number {
  let at = from;
  while (at > start && isSpace(text.charCodeAt(at - 1))) at--;
  return at;
}

/** ASCII white space only. */
function isSpace(unit: number): boolean {
  return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
}
