/** Reads messages at a terminal: with the keys of readline, on several lines, from a history. */
import { writeErr } from "../output.ts";
import { KeyReader, type Key } from "./keys.ts";
import { layOut } from "./layout.ts";
import { LineBuffer } from "./line-buffer.ts";

/** What a person did: said something, pressed Ctrl+C on an empty line, or ended the input. */
export type Input =
  | { readonly type: "message"; readonly text: string }
  | { readonly type: "interrupt" }
  | { readonly type: "end" };

const resumeMs = 100;
const pasteMode = { on: "\u001b[?2004h", off: "\u001b[?2004l" };

/** Draws on stderr, so that stdout has the answers alone. */
export class Editor {
  readonly #keys = new KeyReader();
  readonly #decoder = new TextDecoder();
  /** Typed ahead, for the next message. */
  #queue: Key[] = [];
  readonly #history: string[] = [];
  #buffer = new LineBuffer();
  #prompt = "";
  /** Which of the earlier messages is shown; the one in the making behind the last. */
  #shown = 0;
  #draft = "";
  /** Row of the cursor, counted from the first that was drawn. */
  #row = 0;
  #isRaw = false;

  constructor() {
    // However the program ends: a terminal that stays raw is of no use to anybody.
    process.on("exit", () => this.#leave());
  }

  /** The next message behind a prompt. */
  async read(prompt: string): Promise<Input> {
    this.#prompt = prompt;
    this.#buffer = new LineBuffer();
    this.#shown = this.#history.length;
    this.#row = 0;
    this.#enter();
    this.#draw();
    try {
      return await this.#nextInput();
    } finally {
      this.#leave();
    }
  }

  #nextInput(): Promise<Input> {
    return new Promise((resolve) => {
      const finish = (input: Input) => {
        process.stdin.off("data", take);
        process.stdin.off("end", end);
        process.stdout.off("resize", redraw);
        resolve(input);
      };
      const handle = () => {
        for (let key = this.#queue.shift(); key !== undefined; key = this.#queue.shift()) {
          const input = this.#press(key);
          if (input === undefined) continue;
          this.#finishDrawing();
          return finish(input);
        }
        this.#draw();
      };
      const take = (bytes: Uint8Array) => {
        this.#queue.push(...this.#keys.push(this.#decoder.decode(bytes, { stream: true })));
        handle();
      };
      const end = () => finish({ type: "end" });
      const redraw = () => this.#draw();
      process.stdin.on("data", take);
      process.stdin.on("end", end);
      process.stdout.on("resize", redraw);
      process.stdin.resume();
      if (this.#queue.length > 0) handle();
    });
  }

  /** Returns what the key completes. */
  #press(key: Key): Input | undefined {
    const buffer = this.#buffer;
    if (key.type !== "key") {
      buffer.insert(key.text);
      return undefined;
    }
    switch (key.name) {
      case "enter":
        return this.#submit();
      case "ctrl-c":
        if (buffer.text === "") return { type: "interrupt" };
        buffer.set("");
        return undefined;
      case "ctrl-d":
        if (buffer.text === "") return { type: "end" };
        break;
      case "ctrl-l":
        writeErr("\u001b[H\u001b[2J");
        this.#row = 0;
        return undefined;
      case "ctrl-z":
        this.#suspend();
        return undefined;
    }
    if (!buffer.press(key.name)) this.#browse(key.name);
    return undefined;
  }

  /** Enter behind a backslash, or within three quotes, begins another line. */
  #submit(): Input | undefined {
    const { text } = this.#buffer;
    if (text.endsWith("\\") && this.#buffer.cursor === text.length) {
      this.#buffer.press("backspace");
      this.#buffer.insert("\n");
      return undefined;
    }
    const quoted = /^\s*"""(.*?)("""\s*)?$/s.exec(text);
    if (quoted !== null && quoted[2] === undefined) {
      this.#buffer.insert("\n");
      return undefined;
    }
    if (text.trim() !== "" && this.#history.at(-1) !== text) this.#history.push(text);
    return { type: "message", text: quoted?.[1]?.replace(/^\n|\n$/g, "") ?? text };
  }

  /** Up and down beyond the text lead to earlier messages. */
  #browse(name: string): void {
    const step = { up: -1, down: 1, "ctrl-p": -1, "ctrl-n": 1 }[name];
    const to = this.#shown + (step ?? 0);
    if (step === undefined || to < 0 || to > this.#history.length) return;
    if (this.#shown === this.#history.length) this.#draft = this.#buffer.text;
    this.#shown = to;
    this.#buffer.set(this.#history[to] ?? this.#draft);
  }

  /** Over what was drawn before. */
  #draw(): void {
    const { columns = 80, rows: height = 24 } = process.stderr;
    const { text, cursor: place } = this.#buffer;
    const { rows, cursor } = layOut(text, place, this.#prompt, columns, Math.max(1, height - 1));
    const below = rows.length - 1 - cursor.row;
    const isAtEnd = below === 0 && cursor.column === Bun.stringWidth(rows.at(-1) ?? "");
    const back = isAtEnd ? "" : `${up(below)}\r${right(cursor.column)}`;
    writeErr(`${up(this.#row)}\r\u001b[J${rows.join("\r\n")}${back}`);
    this.#row = cursor.row;
  }

  /** Leaves the cursor on a row of its own below the text. */
  #finishDrawing(): void {
    this.#buffer.moveTo(this.#buffer.text.length);
    this.#draw();
    writeErr("\r\n");
  }

  #suspend(): void {
    this.#leave();
    const resume = () => {
      process.off("SIGCONT", resume);
      if (this.#isRaw) return;
      this.#enter();
      this.#row = 0;
      this.#draw();
    };
    process.on("SIGCONT", resume);
    process.kill(process.pid, "SIGTSTP");
    // Without a shell that could continue it, the system does not suspend a program at all.
    setTimeout(resume, resumeMs);
  }

  #enter(): void {
    process.stdin.setRawMode(true);
    this.#isRaw = true;
    writeErr(pasteMode.on);
  }

  #leave(): void {
    if (!this.#isRaw) return;
    this.#isRaw = false;
    writeErr(pasteMode.off);
    process.stdin.setRawMode(false);
    process.stdin.pause();
  }
}

function right(columns: number): string {
  return columns > 0 ? `\u001b[${columns}C` : "";
}

function up(rows: number): string {
  return rows > 0 ? `\u001b[${rows}A` : "";
}
