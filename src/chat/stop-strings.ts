/** Ends a streamed text at the first of some strings, wherever the pieces are cut. */
import { partialLength } from "./partial-match.ts";

export class StopStrings {
  readonly #stops: readonly string[];
  /** Text that may be the beginning of a stop string. */
  #held = "";
  #matched: string | undefined;

  /** Empty strings never stop anything. */
  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== "");
  }

  /** Whether a stop string was met; nothing comes out behind it. */
  get stopped(): boolean {
    return this.#matched !== undefined;
  }

  /** The stop string that was met. */
  get matched(): string | undefined {
    return this.#matched;
  }

  /** Takes a piece and returns the text that is certainly no part of a stop string. */
  push(piece: string): string {
    if (this.stopped) return "";
    const text = this.#held + piece;
    const [first] = this.#stops
      .map((stop) => ({ stop, at: text.indexOf(stop) }))
      .filter(({ at }) => at >= 0)
      .toSorted((a, b) => a.at - b.at);
    this.#matched = first?.stop;
    const end = first?.at ?? text.length - partialLength(text, this.#stops);
    this.#held = first === undefined ? text.slice(end) : "";
    return text.slice(0, end);
  }

  /** What was held back, once the text has ended without a stop string. */
  flush(): string {
    const held = this.#held;
    this.#held = "";
    return held;
  }
}
