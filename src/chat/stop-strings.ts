/** Ends a streamed text at the first of some strings, wherever the pieces are cut. */
import { partialLength } from "./partial-match.ts";

export class StopStrings {
  readonly #stops: readonly string[];
  /** Text that may be the beginning of a stop string. */
  #held = "";
  #stopped = false;

  /** Empty strings never stop anything. */
  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== "");
  }

  /** Whether a stop string was met; nothing comes out behind it. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** Takes a piece and returns the text that is certainly no part of a stop string. */
  push(piece: string): string {
    if (this.#stopped) return "";
    const text = this.#held + piece;
    const found = this.#stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
    this.#stopped = found.length > 0;
    const end = this.#stopped ? Math.min(...found) : text.length - partialLength(text, this.#stops);
    this.#held = this.#stopped ? "" : text.slice(end);
    return text.slice(0, end);
  }

  /** What was held back, once the text has ended without a stop string. */
  flush(): string {
    const held = this.#held;
    this.#held = "";
    return held;
  }
}
