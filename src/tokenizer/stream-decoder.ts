/** Text from ids that come one by one. */
export class StreamDecoder {
  readonly #bytesOf: (id: number) => Uint8Array;
  /**
   * Holds back the bytes of an unfinished character; what can never become one is U+FFFD at once.
   */
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  constructor(bytesOf: (id: number) => Uint8Array) {
    this.#bytesOf = bytesOf;
  }

  /** The text that became certain with this token: never half a character, often none. */
  push(id: number): string {
    return this.#decoder.decode(this.#bytesOf(id), { stream: true });
  }

  /** The end of the text: a character that stayed unfinished is U+FFFD. */
  flush(): string {
    return this.#decoder.decode();
  }
}
