/** Where recurrent state is kept: positions, literally. */
import { describe, expect, test } from "bun:test";
import { checkpointPositions, nextCheckpoint } from "../../src/engine/checkpoint-positions.ts";

describe("checkpoints of a prompt", () => {
  test("come at its end and every interval, at ends of blocks", () => {
    expect(checkpointPositions(1000, [], 512)).toEqual([512, 992]);
    expect(checkpointPositions(1025, [], 512)).toEqual([512, 1024]);
  });

  test("come behind the first message and the last two", () => {
    expect(checkpointPositions(4000, [200, 900, 1800, 2600, 3500], 100_000)).toEqual([
      192, 2592, 3488, 3968,
    ]);
  });

  test("keep their distance, and the likely place wins", () => {
    expect(checkpointPositions(1000, [940], 512)).toEqual([512, 928]);
    expect(checkpointPositions(1000, [600], 512)).toEqual([576, 992]);
  });

  test("are none in a prompt that is short", () => {
    expect(checkpointPositions(128, [64], 512)).toEqual([]);
    expect(checkpointPositions(129, [], 512)).toEqual([128]);
  });
});

describe("the next checkpoint", () => {
  test("is in the prompt, then at multiples of the interval behind it", () => {
    const next = (position: number) => nextCheckpoint([512, 992], 1000, 512, position);
    expect([0, 511, 512, 991, 992, 1000, 1024, 1025].map(next)).toEqual([
      512, 512, 992, 992, 1024, 1024, 1536, 1536,
    ]);
  });
});
