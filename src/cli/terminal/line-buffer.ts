/** A text that is being edited, of one line or several, and the place of the cursor in it. */

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

export class LineBuffer {
  #text = "";
  #cursor = 0;
  /** What was cut last, to be put back. */
  #cut = "";

  get text(): string {
    return this.#text;
  }

  /** In UTF-16 units. */
  get cursor(): number {
    return this.#cursor;
  }

  /** Another text, with the cursor behind it. */
  set(text: string): void {
    this.#text = text;
    this.#cursor = text.length;
  }

  insert(text: string): void {
    this.#text = this.#before + text + this.#behind;
    this.#cursor += text.length;
  }

  /** Does what a key means; false if it means nothing here, such as up on the first line. */
  press(name: string): boolean {
    const action = actions[name];
    if (action === undefined) return false;
    return action(this) !== false;
  }

  /** Moves the cursor to a place. */
  moveTo(place: number): void {
    this.#cursor = place;
  }

  /** Removes the text between the cursor and a place. */
  delete(place: number): string {
    const [from, to] = [Math.min(place, this.#cursor), Math.max(place, this.#cursor)];
    const removed = this.#text.slice(from, to);
    this.#text = this.#text.slice(0, from) + this.#text.slice(to);
    this.#cursor = from;
    return removed;
  }

  cut(place: number): void {
    this.#cut = this.delete(place);
  }

  paste(): void {
    this.insert(this.#cut);
  }

  /** One character to the left, as people count them. */
  get left(): number {
    const last = [...graphemes.segment(this.#before)].at(-1);
    return last?.index ?? 0;
  }

  get right(): number {
    const [first] = graphemes.segment(this.#behind);
    return this.#cursor + (first?.segment.length ?? 0);
  }

  get wordLeft(): number {
    return this.#before.replace(/[\p{L}\p{N}_]*[^\p{L}\p{N}_]*$/u, "").length;
  }

  get wordRight(): number {
    const word = /^[^\p{L}\p{N}_]*[\p{L}\p{N}_]*/u.exec(this.#behind)?.[0] ?? "";
    return this.#cursor + word.length;
  }

  get lineStart(): number {
    return this.#before.lastIndexOf("\n") + 1;
  }

  get lineEnd(): number {
    const at = this.#text.indexOf("\n", this.#cursor);
    return at < 0 ? this.#text.length : at;
  }

  /** The same column one line up, or down; undefined if there is no such line. */
  up(): number | undefined {
    const start = this.lineStart;
    if (start === 0) return undefined;
    const above = this.#text.lastIndexOf("\n", start - 2) + 1;
    return Math.min(above + this.#cursor - start, start - 1);
  }

  down(): number | undefined {
    const end = this.lineEnd;
    if (end === this.#text.length) return undefined;
    const next = this.#text.indexOf("\n", end + 1);
    const limit = next < 0 ? this.#text.length : next;
    return Math.min(end + 1 + this.#cursor - this.lineStart, limit);
  }

  get #before(): string {
    return this.#text.slice(0, this.#cursor);
  }

  get #behind(): string {
    return this.#text.slice(this.#cursor);
  }
}

const move = (place: (buffer: LineBuffer) => number | undefined) => (buffer: LineBuffer) => {
  const to = place(buffer);
  if (to === undefined) return false;
  buffer.moveTo(to);
  return true;
};

/** The keys of readline, as far as fingers know them. */
const actions: Readonly<Record<string, (buffer: LineBuffer) => unknown>> = {
  left: move((buffer) => buffer.left),
  right: move((buffer) => buffer.right),
  up: move((buffer) => buffer.up()),
  down: move((buffer) => buffer.down()),
  home: move((buffer) => buffer.lineStart),
  end: move((buffer) => buffer.lineEnd),
  "ctrl-b": move((buffer) => buffer.left),
  "ctrl-f": move((buffer) => buffer.right),
  "ctrl-a": move((buffer) => buffer.lineStart),
  "ctrl-e": move((buffer) => buffer.lineEnd),
  "word-left": move((buffer) => buffer.wordLeft),
  "word-right": move((buffer) => buffer.wordRight),
  newline: (buffer) => buffer.insert("\n"),
  backspace: (buffer) => buffer.delete(buffer.left),
  delete: (buffer) => buffer.delete(buffer.right),
  "ctrl-d": (buffer) => buffer.delete(buffer.right),
  "ctrl-k": (buffer) => buffer.cut(buffer.lineEnd),
  "ctrl-u": (buffer) => buffer.cut(buffer.lineStart),
  "ctrl-w": (buffer) => buffer.cut(buffer.wordLeft),
  "delete-word-left": (buffer) => buffer.cut(buffer.wordLeft),
  "delete-word-right": (buffer) => buffer.cut(buffer.wordRight),
  "ctrl-y": (buffer) => buffer.paste(),
};
