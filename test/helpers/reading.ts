/** What a program prints, as it comes. */

interface Reader {
  read(): Promise<{ value?: Uint8Array | undefined; done: boolean }>;
}

/** Reads a stream until something has come that matches; returns all of it. */
export async function readUntil(reader: Reader, pattern: RegExp): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  while (!pattern.test(text)) {
    const { value, done } = await reader.read();
    if (done) return text;
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

/** All that is still to come. */
export async function rest(reader: Reader): Promise<string> {
  return readUntil(reader, /(?!)/);
}
