/**
 * Messages from single lines: one is one, unless it ends with a backslash, or three quotes open a
 * block that lasts until they come again.
 */

const quotes = '"""';

export class MessageLines {
  #lines: string[] = [];
  #isQuoted = false;

  /** Whether a message has begun that is not complete. */
  get isOpen(): boolean {
    return this.#lines.length > 0 || this.#isQuoted;
  }

  /** Takes the next line, and returns the message that it completes. */
  push(line: string): string | undefined {
    let rest = line;
    if (!this.isOpen && line.trimStart().startsWith(quotes)) {
      this.#isQuoted = true;
      rest = line.trimStart().slice(quotes.length);
      if (rest === "") return undefined;
    }
    if (this.#isQuoted) {
      const isClosed = rest.trimEnd().endsWith(quotes);
      const text = isClosed ? rest.trimEnd().slice(0, -quotes.length) : rest;
      if (!isClosed || text !== "") this.#lines.push(text);
      return isClosed ? (this.end() ?? "") : undefined;
    }
    if (!line.endsWith("\\")) {
      this.#lines.push(line);
      return this.end();
    }
    this.#lines.push(line.slice(0, -1));
    return undefined;
  }

  /** What there is of a message that nothing completes any more. */
  end(): string | undefined {
    const message = this.isOpen ? this.#lines.join("\n") : undefined;
    this.#lines = [];
    this.#isQuoted = false;
    return message;
  }
}
