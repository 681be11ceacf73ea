/** Messages from a pipe, or from a terminal that cannot be drawn on. */
import { UserError } from "../../errors.ts";
import { writeErr } from "../output.ts";
import type { Input } from "../terminal/editor.ts";
import { MessageLines } from "./message-lines.ts";

export class LineInput {
  readonly #lines: AsyncIterator<string>;
  readonly #showsPrompt: boolean;

  constructor(stream: AsyncIterable<Uint8Array>, showsPrompt: boolean) {
    this.#lines = linesOf(stream);
    this.#showsPrompt = showsPrompt;
  }

  /** Throws a "usage" error for invalid UTF-8. */
  async read(prompt: string): Promise<Input> {
    const message = new MessageLines();
    for (;;) {
      if (this.#showsPrompt) writeErr(message.isOpen ? " ".repeat(prompt.length) : prompt);
      const line = await this.#lines.next();
      const text = line.done === true ? message.end() : message.push(line.value);
      if (text !== undefined) return { type: "message", text };
      if (line.done === true) return { type: "end" };
    }
  }
}

async function* linesOf(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let rest = "";
  const decode = (bytes?: Uint8Array) => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
      const remedy = "convert it first, for instance with iconv";
      throw new UserError("usage", "stdin is no valid UTF-8", remedy);
    }
  };
  for await (const chunk of stream) {
    const lines = (rest + decode(chunk)).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield line.replace(/\r$/, "");
  }
  rest += decode();
  if (rest !== "") yield rest;
}
