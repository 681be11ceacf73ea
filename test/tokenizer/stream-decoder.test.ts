/** Streams never show half a character, and hold nothing back that is certain. */
import { describe, expect, test } from "bun:test";
import { StreamDecoder } from "../../src/tokenizer/stream-decoder.ts";
import { quietTokenizer, tinyBpe } from "./vocabularies.ts";

/** What a stream of these byte strings shows, step by step, and at the end. */
function steps(parts: readonly Uint8Array[]): string[] {
  const decoder = new StreamDecoder((id) => parts[id] ?? new Uint8Array(0));
  return [...parts.map((_, id) => decoder.push(id)), decoder.flush()];
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

/** All ways to cut bytes into at most `most` parts. */
function* cuts(bytes: Uint8Array, most: number): Generator<Uint8Array[]> {
  yield [bytes];
  if (most === 1) return;
  for (let at = 1; at < bytes.length; at++) {
    for (const rest of cuts(bytes.subarray(at), most - 1)) yield [bytes.subarray(0, at), ...rest];
  }
}

describe("a character in several tokens", () => {
  test.each(["é", "歪", "😀", "👩‍👩‍👧", " é", "x😀y"])(
    "%s, in every way over up to 4 tokens",
    (text) => {
      for (const parts of cuts(utf8(text), 4)) {
        const shown = steps(parts);
        expect(shown.join("")).toBe(text);
        expect(shown.join("|")).not.toContain("\ufffd");
        expect(shown.at(-1)).toBe("");
      }
    },
  );

  test("a token of a space and the first byte shows the space at once", () => {
    expect(steps([utf8(" é").subarray(0, 2), utf8("é").subarray(1)])).toEqual([" ", "é", ""]);
  });

  test("text before an unfinished character is shown at once", () => {
    const bytes = utf8("hi😀");
    expect(steps([bytes.subarray(0, 3), bytes.subarray(3)])).toEqual(["hi", "😀", ""]);
  });

  test("through real ids", () => {
    const tokenizer = quietTokenizer(tinyBpe(["Ġ ð"]));
    const decoder = tokenizer.decoder();
    expect([256, 0x9f, 0x98, 0x80, 33].map((id) => decoder.push(id))).toEqual([
      " ",
      "",
      "",
      "😀",
      "!",
    ]);
  });
});

describe("bytes that are no character", () => {
  test("are U+FFFD as soon as that is certain", () => {
    expect(steps([Uint8Array.of(0xff), utf8("a")])).toEqual(["\ufffd", "a", ""]);
    expect(steps([Uint8Array.of(0xe6), utf8("a")])).toEqual(["", "\ufffda", ""]);
    expect(steps([Uint8Array.of(0xf0, 0x9f), Uint8Array.of(0xf0, 0x9f, 0x98, 0x80)])).toEqual([
      "",
      "\ufffd😀",
      "",
    ]);
  });

  test("are U+FFFD at the end if they stayed unfinished", () => {
    expect(steps([utf8("a😀").subarray(0, 4)])).toEqual(["a", "\ufffd"]);
  });

  test("a byte order mark is text", () => {
    expect(steps([utf8("\ufeffa")])).toEqual(["\ufeffa", ""]);
  });
});

test("streams do not disturb each other", () => {
  const tokenizer = quietTokenizer(tinyBpe([]));
  const one = tokenizer.decoder();
  const two = tokenizer.decoder();
  expect([one.push(0xc3), two.push(0xc3), one.push(0xa9), two.push(0xa8)]).toEqual([
    "",
    "",
    "é",
    "è",
  ]);
});
