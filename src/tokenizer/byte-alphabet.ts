/**
 * The alphabet in which GPT-2 vocabularies spell bytes: printable Latin-1 characters stand for
 * themselves, the other 68 bytes, in order, are the characters from U+0100 on.
 */

/** The code point that spells each byte. */
export const codePointOfByte: Uint16Array = spellings();

/** The byte that a code point spells; -1 where it spells none. */
const byteOfCodePoint: Int16Array = bytesBySpelling();

/** The bytes that a token stands for. Characters outside the alphabet stand for their own UTF-8. */
export function bytesOfSpelling(token: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(token.length);
  let length = 0;
  for (let at = 0; at < token.length; at++) {
    const lead = token[at] as number;
    // The alphabet ends at U+0143, so its characters take one or two bytes.
    const next = lead >= 0xc2 && lead <= 0xc5 ? (token[at + 1] ?? 0) : 0;
    const codePoint = next === 0 ? lead : ((lead & 0x1f) << 6) | (next & 0x3f);
    const byte = next === 0 && lead > 0x7f ? -1 : (byteOfCodePoint[codePoint] ?? -1);
    bytes[length++] = byte < 0 ? lead : byte;
    if (byte >= 0 && next !== 0) at++;
  }
  return bytes.subarray(0, length);
}

function spellings(): Uint16Array {
  const table = new Uint16Array(256);
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) table[byte] = spellsItself(byte) ? byte : next++;
  return table;
}

function spellsItself(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte !== 0xad);
}

function bytesBySpelling(): Int16Array {
  const table = new Int16Array(0x144).fill(-1);
  codePointOfByte.forEach((codePoint, byte) => (table[codePoint] = byte));
  return table;
}
