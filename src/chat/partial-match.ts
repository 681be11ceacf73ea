/** Strings that are searched in a text of which the rest is still to come. */

/** Length of the longest end of `text` with which one of the strings begins, short of all of it. */
export function partialLength(text: string, strings: readonly string[]): number {
  const longest = Math.max(0, ...strings.map((string) => string.length - 1));
  for (let length = Math.min(longest, text.length); length > 0; length--) {
    const tail = text.slice(text.length - length);
    if (strings.some((string) => string.length > length && string.startsWith(tail))) return length;
  }
  return 0;
}
