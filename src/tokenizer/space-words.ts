/**
 * A safe place to cut text in which U+2581 stands for a space: before a space, unless some token
 * goes on across it. Merging never crosses such a place, so words can be merged, and remembered,
 * one by one.
 */
import type { TokenTable } from "./token-table.ts";

/** What spaces are written as. */
export const spaceMark = "▁";

/** With more characters than this, cutting gains nothing. */
const exceptionsMax = 64;

/**
 * Matches the words one after the other, the whole text together; `undefined` if it must not be
 * cut.
 */
export function spaceWords(table: TokenTable): RegExp | undefined {
  const before = charactersBeforeSpace(table);
  if (before.size > exceptionsMax) return undefined;
  if (before.size === 0) return /▁*[^▁]+|▁+/gu;
  const exceptions = Array.from(before, (character) => `\\u{${character.toString(16)}}`).join("");
  return new RegExp(`▁*(?:[^▁${exceptions}]|[${exceptions}]▁*)+|▁+`, "gu");
}

/** The characters other than a space that stand right before a space inside a token. */
function charactersBeforeSpace(table: TokenTable): Set<number> {
  const { bytes } = table;
  const found = new Set<number>();
  for (let id = 0; id < table.count; id++) {
    const start = table.start(id);
    const end = table.end(id) - 2;
    for (let at = start + 1; at < end; at++) {
      if (isSpace(bytes, at) && !(at >= start + 3 && isSpace(bytes, at - 3))) {
        found.add(characterBefore(bytes, start, at));
      }
    }
  }
  return found;
}

function isSpace(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === 0xe2 && bytes[at + 1] === 0x96 && bytes[at + 2] === 0x81;
}

function characterBefore(bytes: Uint8Array, start: number, end: number): number {
  let from = end - 1;
  while (from > start && ((bytes[from] ?? 0) & 0xc0) === 0x80) from--;
  return (
    new TextDecoder("utf-8", { ignoreBOM: true })
      .decode(bytes.subarray(from, end))
      .codePointAt(0) ?? 0xfffd
  );
}
