/** What the parsers of calls share: where they read and write, and which tools there are. */
import { Malformed, type AnswerInput, type Reading } from "./input.ts";
import type { ToolSchemas } from "./tool-schemas.ts";
import type { PartWriter } from "./writer.ts";

/** Reads what stands behind the mark that opens calls, the closing mark included. */
export type CallParser = (calls: Calls) => Reading;

export class Calls {
  readonly input: AnswerInput;
  readonly out: PartWriter;
  readonly tools: ToolSchemas;
  #isOpen = false;
  /** White space before what is recorded. */
  #space = "";

  constructor(input: AnswerInput, out: PartWriter, tools: ToolSchemas) {
    this.input = input;
    this.out = out;
    this.tools = tools;
  }

  /** The name is known. Nothing may come between this and `end`. */
  begin(name: string, id?: string): void {
    if (!/^[^\s"'<>{}]{1,256}$/.test(name)) throw new Malformed("no name");
    this.#isOpen = true;
    this.out.call(name, id);
  }

  /** A piece of the arguments, which are a JSON object. */
  arguments(text: string): void {
    this.out.arguments(text);
  }

  end(): void {
    this.#isOpen = false;
    this.out.callEnd();
    this.input.startRecord();
    this.#space = "";
  }

  /**
   * Parses calls behind a mark that was read. What does not follow the syntax, or is cut off, comes
   * out as text: from the mark on, or from the end of the last call that was whole. So do the
   * other `marks` of the syntax then. Returns whether all was well.
   */
  *attempt(mark: string, parse: CallParser, marks: readonly string[] = []): Reading<boolean> {
    this.#space = this.out.mark();
    this.input.startRecord(mark);
    try {
      yield* parse(this);
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      if (this.#isOpen) this.out.callBroken();
      this.#isOpen = false;
      this.input.show(marks);
      const { record } = this.input;
      if (record.trim() !== "") {
        this.out.plain(this.#space + record);
        return false;
      }
    }
    this.out.mark();
    return true;
  }
}
