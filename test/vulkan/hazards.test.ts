/** Which accesses need a barrier between them. */
import { describe, expect, test } from "bun:test";
import type { BufferSlice, DeviceBuffer } from "../../src/vulkan/buffer.ts";
import { HazardTracker } from "../../src/vulkan/hazards.ts";

const [a, b] = [{}, {}] as DeviceBuffer[];

function slice(buffer: DeviceBuffer | undefined, offset: number, byteSize: number): BufferSlice {
  if (buffer === undefined) throw new RangeError("no such buffer");
  return { buffer, offset, byteSize };
}

const [low, high, middle] = [slice(a, 0, 256), slice(a, 256, 256), slice(a, 128, 256)];
const elsewhere = slice(b, 0, 256);

test.each([
  ["a read behind a read", { reads: [low] }, { reads: [low] }, false],
  ["a read behind a write", { writes: [low] }, { reads: [low] }, true],
  ["a write behind a read", { reads: [low] }, { writes: [low] }, true],
  ["a write behind a write", { writes: [low] }, { writes: [low] }, true],
  ["a read of the next bytes", { writes: [low] }, { reads: [high] }, false],
  ["a write of the bytes before", { reads: [high] }, { writes: [low] }, false],
  ["a read of half the bytes", { writes: [middle] }, { reads: [low] }, true],
  ["a read that contains what was written", { writes: [slice(a, 10, 1)] }, { reads: [low] }, true],
  ["a read within what was written", { writes: [low] }, { reads: [slice(a, 10, 1)] }, true],
  ["the same range of another buffer", { writes: [low] }, { reads: [elsewhere] }, false],
  ["the second of several", { writes: [elsewhere, high] }, { reads: [low, high] }, true],
  ["nothing", { writes: [low] }, {}, false],
])("%s", (_, first, second, expected) => {
  const tracker = new HazardTracker();
  tracker.add({ reads: [], writes: [], ...first });
  expect(tracker.conflicts({ reads: [], writes: [], ...second })).toBe(expected);
});

describe("what is pending", () => {
  test("adds up until it is cleared", () => {
    const tracker = new HazardTracker();
    tracker.add({ reads: [], writes: [low] });
    tracker.add({ reads: [], writes: [elsewhere] });
    expect(tracker.conflicts({ reads: [low], writes: [] })).toBe(true);
    expect(tracker.conflicts({ reads: [elsewhere], writes: [] })).toBe(true);
    tracker.clear();
    expect(tracker.conflicts({ reads: [low], writes: [elsewhere] })).toBe(false);
  });

  test("is not changed by asking", () => {
    const tracker = new HazardTracker();
    tracker.conflicts({ reads: [], writes: [low] });
    expect(tracker.conflicts({ reads: [low], writes: [] })).toBe(false);
  });

  test("a range of no bytes touches nothing", () => {
    const tracker = new HazardTracker();
    tracker.add({ reads: [], writes: [low] });
    expect(tracker.conflicts({ reads: [slice(a, 256, 0)], writes: [] })).toBe(false);
  });
});
