/** What turns a stretch of plain text into ids, once special tokens have been cut out. */
export interface TextModel {
  /**
   * Appends the ids of `text` to `out`. `first` says that the stretch begins the text or follows a
   * special token: some models put a space before it then.
   */
  encode(text: string, out: number[], first: boolean): void;

  /** The bytes that an ordinary token stands for. */
  decode(token: Uint8Array): Uint8Array;
}

/** The token with each U+2581 as the space that it stands for. */
export function spacesOfMarks(token: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(token.length);
  let length = 0;
  for (let at = 0; at < token.length; at++) {
    if (token[at] === 0xe2 && token[at + 1] === 0x96 && token[at + 2] === 0x81) {
      bytes[length++] = 0x20;
      at += 2;
    } else bytes[length++] = token[at] as number;
  }
  return bytes.subarray(0, length);
}
