/**
 * Collects the parts that a parser finds. White space beside a mark belongs to the mark, but for
 * the indentation of a line that begins behind it.
 */
import type { Part } from "../answer.ts";

type TextKind = "text" | "reasoning";

export class PartWriter {
  readonly #newId: () => string;
  #parts: Part[] = [];
  /** White space at the end of what was written: not yet certain to count. */
  #space = "";
  #kind: TextKind = "text";
  /** Whether nothing but white space came since the last mark. */
  #isBehindMark = false;
  /** What goes between this text and an earlier one of its kind, if there is one. */
  #gap = "";
  readonly #written = new Set<TextKind>();
  #callCount = 0;

  constructor(newId: () => string) {
    this.#newId = newId;
  }

  text(text: string): void {
    this.#write("text", text);
  }

  reasoning(text: string): void {
    this.#write("reasoning", text);
  }

  /** A mark stands here. Returns the white space before it, in case it turns out to be none. */
  mark(): string {
    const space = this.#isBehindMark ? "" : this.#space;
    this.#space = "";
    this.#gap = "";
    this.#isBehindMark = true;
    return space;
  }

  /** As `mark`, and another text begins behind it, not the rest of an earlier one. */
  paragraph(): void {
    this.mark();
    this.#gap = "\n\n";
  }

  /** What was taken for more than text, and is just that. */
  plain(text: string): void {
    this.#isBehindMark = false;
    this.#write("text", text);
  }

  call(name: string, id = this.#newId()): void {
    this.#parts.push({ type: "call", index: this.#callCount++, id, name });
  }

  arguments(text: string): void {
    const last = this.#parts.at(-1);
    const index = this.#callCount - 1;
    if (last?.type !== "arguments") this.#parts.push({ type: "arguments", index, text });
    else this.#parts[this.#parts.length - 1] = { ...last, text: last.text + text };
  }

  callEnd(): void {
    this.#parts.push({ type: "call_end", index: this.#callCount - 1 });
  }

  callBroken(): void {
    this.#parts.push({ type: "call_broken", index: this.#callCount - 1 });
  }

  /** The answer is over: what was held back counts. */
  end(): void {
    if (!this.#isBehindMark) this.#push(this.#space);
    this.#space = "";
  }

  /** The parts since the last call. */
  take(): Part[] {
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }

  #write(kind: TextKind, text: string): void {
    const all = this.#space + text;
    const end = all.trimEnd().length;
    this.#space = all.slice(end);
    if (end === 0) return;
    this.#kind = kind;
    const gap = this.#written.has(kind) ? this.#gap : "";
    const certain = all.slice(0, end);
    this.#push(gap + (this.#isBehindMark ? withoutLead(certain) : certain));
    this.#written.add(kind);
    this.#gap = "";
    this.#isBehindMark = false;
  }

  #push(text: string): void {
    if (text === "") return;
    const last = this.#parts.at(-1);
    const type = this.#kind;
    if (last?.type === "text" || last?.type === "reasoning") {
      if (last.type === type) {
        this.#parts[this.#parts.length - 1] = { type, text: last.text + text };
        return;
      }
    }
    this.#parts.push({ type, text });
  }
}

/** Without the white space at the start, up to the line on which the text begins. */
function withoutLead(text: string): string {
  const lead = text.slice(0, text.length - text.trimStart().length);
  const line = lead.lastIndexOf("\n") + 1;
  return text.slice(line > 0 ? line : lead.length);
}
