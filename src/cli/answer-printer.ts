/**
 * Prints an answer while it comes: text and calls to stdout, thoughts dimmed to stderr. So a script
 * gets the answer alone, and a terminal shows both.
 */
import type { Part } from "../index.ts";
import { isQuiet, paint, writeErr, writeOut } from "./output.ts";

export class AnswerPrinter {
  #kind: "none" | "text" | "reasoning" | "call" = "none";
  /** Whether the cursor of stdout is at the start of a line. */
  #isLineStart = true;

  async print(part: Part): Promise<void> {
    switch (part.type) {
      case "reasoning":
        await this.#begin("reasoning");
        if (!isQuiet()) writeErr(paint(part.text, "dim"));
        break;
      case "text":
        await this.#begin("text");
        await this.#out(part.text);
        break;
      case "call":
        await this.#begin("call");
        await this.#out(`${part.name}(`);
        break;
      case "arguments":
        await this.#out(part.text);
        break;
      case "call_end":
        await this.#out(")\n");
        break;
      case "call_broken":
        await this.#out("\n");
    }
  }

  /** Ends the last line; an answer without text is an empty one. */
  async end(): Promise<void> {
    if (this.#kind === "reasoning" && !isQuiet()) writeErr("\n");
    if (this.#kind === "none" || !this.#isLineStart) await this.#out("\n");
  }

  /** What is of another kind begins on a line of its own. */
  async #begin(kind: "text" | "reasoning" | "call"): Promise<void> {
    if (this.#kind === kind) return;
    if (this.#kind === "reasoning" && !isQuiet()) writeErr("\n");
    if (this.#kind !== "none" && !this.#isLineStart) await this.#out("\n");
    this.#kind = kind;
  }

  async #out(text: string): Promise<void> {
    await writeOut(text);
    this.#isLineStart = text.endsWith("\n");
  }
}
