/** Which bytes are there, and who fetches which. */
import { describe, expect, test } from "bun:test";
import { pieceBytesOf, Pieces } from "../../src/store/pieces.ts";

const mebibyte = 1 << 20;

test.each([
  [1, mebibyte],
  [5 * mebibyte, mebibyte],
  [33 * mebibyte, 2 * mebibyte],
  [5_000_000_000, 64 * mebibyte],
  [2 ** 45, 512 * mebibyte],
])("a file of %i bytes has pieces of %i", (sizeBytes, pieceBytes) => {
  expect(pieceBytesOf(sizeBytes)).toBe(pieceBytes);
});

describe("pieces", () => {
  test("are taken in order, each by one", () => {
    const pieces = new Pieces(25, 10);
    const taken = [pieces.take(), pieces.take(), pieces.take(), pieces.take()];
    expect(taken.map((piece) => piece && [piece.start, piece.end])).toEqual([
      [0, 10],
      [10, 20],
      [20, 25],
      undefined,
    ]);
  });

  test("that are given back incomplete are taken again", () => {
    const pieces = new Pieces(25, 10);
    const [first, second] = [pieces.take(), pieces.take()];
    if (first === undefined || second === undefined) throw new Error("there are three");
    first.doneBytes = 10;
    second.doneBytes = 3;
    pieces.giveBack(second);
    pieces.giveBack(first);
    expect(pieces.take()).toBe(second);
    expect(pieces.doneBytes).toBe(13);
  });

  test("go on with what is there, and never with more than fits", () => {
    const done = new Map([
      [0, 10],
      [2, 99],
    ]);
    const pieces = new Pieces(25, 10, done);
    expect(pieces.doneBytes).toBe(15);
    expect(pieces.take()?.index).toBe(1);
    expect(pieces.take()).toBeUndefined();
  });
});
