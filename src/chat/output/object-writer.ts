/** Writes the arguments of a call as a JSON object, member by member. */
import type { Calls } from "./call.ts";
import { escaped } from "./json-value.ts";

export class ObjectWriter {
  readonly #calls: Calls;
  #count = 0;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** The name of the next member; its value must follow. */
  key(name: string): void {
    const before = this.#count++ === 0 ? "{" : ", ";
    this.#calls.arguments(`${before}${JSON.stringify(name)}: `);
  }

  /** A piece of a value, which is JSON. */
  json(text: string): void {
    this.#calls.arguments(text);
  }

  /** A piece of a string that `quote` has opened and is to close. */
  text(text: string): void {
    if (text !== "") this.#calls.arguments(escaped(text));
  }

  quote(): void {
    this.#calls.arguments('"');
  }

  end(): void {
    this.#calls.arguments(this.#count === 0 ? "{}" : "}");
  }
}
