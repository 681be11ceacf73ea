/** What a terminal sends, as keys: text, names such as "left" and "ctrl-a", and pasted text. */

export type Key =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "paste"; readonly text: string }
  | { readonly type: "key"; readonly name: string };

const pasteStart = "\u001b[200~";
const pasteEnd = "\u001b[201~";

/** What stands behind ESC [ or ESC O. */
const sequences: Readonly<Record<string, string>> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  H: "home",
  F: "end",
  "1~": "home",
  "7~": "home",
  "4~": "end",
  "8~": "end",
  "3~": "delete",
  "1;5C": "word-right",
  "1;3C": "word-right",
  "1;5D": "word-left",
  "1;3D": "word-left",
};

/** Behind ESC alone: Alt with a letter. */
const altKeys: Readonly<Record<string, string>> = {
  b: "word-left",
  f: "word-right",
  d: "delete-word-right",
  "\u007f": "delete-word-left",
  "\r": "newline",
  "\n": "newline",
};

const controlKeys: Readonly<Record<string, string>> = {
  "\r": "enter",
  "\n": "newline",
  "\u007f": "backspace",
  "\b": "backspace",
};

/** Takes what was sent, in whatever pieces, and gives keys as soon as they are whole. */
export class KeyReader {
  #rest = "";

  push(sent: string): Key[] {
    this.#rest += sent;
    const keys: Key[] = [];
    for (;;) {
      const taken = takeKey(this.#rest);
      if (taken === undefined) return keys;
      this.#rest = this.#rest.slice(taken.length);
      if (taken.key !== undefined) keys.push(taken.key);
    }
  }
}

interface Taken {
  readonly length: number;
  /** Undefined for what means nothing. */
  readonly key: Key | undefined;
}

/** The key at the start; undefined if it is not whole yet, or nothing is there. */
function takeKey(sent: string): Taken | undefined {
  const first = sent[0];
  if (first === undefined) return undefined;
  if (first === "\u001b") return takeEscape(sent);
  if (first < " " || first === "\u007f") {
    const letter = String.fromCharCode(first.charCodeAt(0) + 0x60);
    return { length: 1, key: { type: "key", name: controlKeys[first] ?? `ctrl-${letter}` } };
  }
  const text = /^[^\u0000-\u001f\u007f]+/.exec(sent)?.[0] ?? first;
  return { length: text.length, key: { type: "text", text } };
}

function takeEscape(sent: string): Taken | undefined {
  if (sent.startsWith(pasteStart)) {
    const end = sent.indexOf(pasteEnd);
    if (end < 0) return undefined;
    const text = plainText(sent.slice(pasteStart.length, end));
    return { length: end + pasteEnd.length, key: { type: "paste", text } };
  }
  const found = /^\u001b(?:\[|O)([0-9;?]*[@-~])/.exec(sent);
  if (found !== null) return { length: found[0].length, key: named(sequences[found[1] ?? ""]) };
  if (/^\u001b(?:[[O][0-9;?]*)?$/.test(sent)) return undefined;
  const [, next = ""] = sent;
  const name = altKeys[next];
  return { length: name === undefined ? 1 : 2, key: named(name) };
}

function named(name: string | undefined): Key | undefined {
  return name === undefined ? undefined : { type: "key", name };
}

/** Pasted text with line feeds, and no other control characters but tabs. */
function plainText(pasted: string): string {
  return pasted.replace(/\r\n?/g, "\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "");
}
