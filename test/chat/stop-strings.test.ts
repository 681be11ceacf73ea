/** Stop strings end a text at the first of them, however the text is cut into pieces. */
import { describe, expect, test } from "bun:test";
import { StopStrings } from "../../src/chat/stop-strings.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

/** All that comes out for these pieces, and whether it was stopped. */
function run(stops: readonly string[], pieces: readonly string[]) {
  const stream = new StopStrings(stops);
  const out = pieces.map((piece) => stream.push(piece));
  return { text: out.join("") + stream.flush(), stopped: stream.stopped };
}

describe("a text", () => {
  test.each<[string, string[], string[], string, boolean]>([
    ["without stop strings comes out as it is", [], ["ab", "c"], "abc", false],
    ["that holds none comes out whole", ["xyz"], ["ab", "xy", "c"], "abxyc", false],
    ["ends before the stop string", ["\n\n"], ["one", "\n\ntwo"], "one", true],
    [
      "ends there too if the string comes in pieces",
      ["STOP"],
      ["oneS", "T", "OP", "x"],
      "one",
      true,
    ],
    ["may begin with it", ["a"], ["abc"], "", true],
    ["may be nothing else", ["abc"], ["a", "b", "c"], "", true],
    ["gives back what only looked like it", ["abc"], ["xab", "abd"], "xababd", false],
    ["gives back a beginning at its end", ["abc"], ["xab"], "xab", false],
    ["ends at the earlier of two", ["yy", "xx"], ["axxbyy"], "a", true],
    ["ends at the second if only that comes", ["yy", "xx"], ["ayx", "x"], "ay", true],
    ["ends at a repeated beginning", ["aab"], ["aaa", "ab"], "aa", true],
    ["ignores empty strings", ["", "x"], ["ab", "x"], "ab", true],
    ["with only empty strings never stops", [""], ["ab"], "ab", false],
    ["of other scripts and signs", ["終わり", "🛑"], ["はい終", "わり"], "はい", true],
    ["with a sign cut in half", ["🛑"], ["a\ud83d", "\uded1b"], "a", true],
  ])("%s", (_, stops, pieces, text, stopped) => {
    expect(run(stops, pieces)).toEqual({ text, stopped });
  });

  test("comes out as soon as it cannot be part of a stop string", () => {
    const stream = new StopStrings(["<end>"]);
    expect(["a", "<", "e", "x", "<end", ">", "z"].map((piece) => stream.push(piece))).toEqual([
      "a",
      "",
      "",
      "<ex",
      "",
      "",
      "",
    ]);
    expect([stream.flush(), stream.stopped]).toEqual(["", true]);
  });

  test("is flushed once", () => {
    const stream = new StopStrings(["ab"]);
    stream.push("a");
    expect([stream.flush(), stream.flush()]).toEqual(["a", ""]);
  });
});

describe("any text, cut anywhere, with any stop strings,", () => {
  const random = new SeededRandom(7);
  const letters = (count: number) =>
    Array.from({ length: count }, () => "abc".charAt(random.below(3))).join("");

  function cut(text: string): string[] {
    const pieces: string[] = [];
    for (let at = 0; at < text.length;) {
      const length = 1 + random.below(5);
      pieces.push(text.slice(at, at + length));
      at += length;
    }
    return pieces;
  }

  const isInside = (stops: readonly string[]) =>
    stops.some((a, i) => stops.some((b, j) => i !== j && b.includes(a)));

  test("comes out up to the first match, and no more than a beginning is held back", () => {
    for (let round = 0; round < 5000; round++) {
      const stops = Array.from({ length: random.below(4) }, () => letters(1 + random.below(5)));
      // Where one is inside another, see below.
      if (isInside(stops)) continue;
      const text = letters(random.below(30));
      const first = Math.min(...stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0));
      const expected = Number.isFinite(first) ? text.slice(0, first) : text;
      const longest = Math.max(1, ...stops.map((stop) => stop.length));
      const stream = new StopStrings(stops);
      let [given, out] = ["", ""];
      for (const piece of cut(text)) {
        given += piece;
        out += stream.push(piece);
        if (!expected.startsWith(out)) throw new Error(`${JSON.stringify({ stops, text, out })}`);
        if (!stream.stopped) expect(given.length - out.length).toBeLessThanOrEqual(longest - 1);
      }
      out += stream.flush();
      expect({ stops, text, out, stopped: stream.stopped }).toEqual({
        stops,
        text,
        out: expected,
        stopped: Number.isFinite(first),
      });
    }
  });

  // The inner one is complete first, if the text comes letter by letter.
  test.failing("ends at the string that is complete first if one is inside another", () => {
    expect(run(["abc", "b"], ["a", "b", "c"]).text).toBe("a");
    expect(run(["abc", "b"], ["abc"]).text).toBe("a");
  });
});
