/** Submissions are counted, finish in order, and can be waited for. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/errors.ts";
import { DeviceBuffer } from "../../src/vulkan/buffer.ts";
import { Program } from "../../src/vulkan/program.ts";
import { Timeline } from "../../src/vulkan/timeline.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { ownedByEachTest } from "../helpers/owned.ts";

const own = ownedByEachTest();

/** A timeline of its own, and a program that takes the device a moment. */
function start() {
  const { device, pipelines } = testGpu();
  const timeline = new Timeline(device);
  own({ free: () => timeline.close() });
  const buffer = own(new DeviceBuffer(device, 1 << 24, "device", "a test"));
  const program = own(new Program(device, pipelines, "fill"));
  program.fill(buffer.slice(), 1);
  program.seal();
  own({ free: () => device.waitIdle() });
  return { timeline, submit: () => timeline.submit(program.commands, program.label) };
}

describe.skipIf(noGpu !== undefined)("the timeline", () => {
  test("numbers submissions from 1", () => {
    const { timeline, submit } = start();
    expect(timeline.submitted).toBe(0);
    expect([submit(), submit(), submit()]).toEqual([1, 2, 3]);
    expect(timeline.submitted).toBe(3);
    timeline.wait(3);
  });

  test("knows what is done: all up to what was waited for", () => {
    const { timeline, submit } = start();
    expect([timeline.isDone(0), timeline.isDone(1)]).toEqual([true, false]);
    for (let i = 0; i < 8; i++) submit();
    timeline.wait(5);
    expect([1, 2, 3, 4, 5].map((number) => timeline.isDone(number))).toEqual(Array(5).fill(true));
    timeline.wait(8);
    expect(timeline.isDone(8)).toBe(true);
    expect(timeline.isDone(9)).toBe(false);
  });

  test("waits for what is long done, and again, at once", () => {
    const { timeline, submit } = start();
    timeline.wait(0);
    timeline.wait(submit());
    timeline.wait(1);
    timeline.wait(0);
  });

  test("does not wait for what was never submitted", () => {
    const { timeline } = start();
    expect(() => timeline.wait(1)).toThrow(new InvariantError("waiting for submission 1 of 0"));
  });

  test("takes many submissions of one program before the first is done", () => {
    const { timeline, submit } = start();
    for (let i = 0; i < 50; i++) submit();
    timeline.wait(timeline.submitted);
    expect(timeline.isDone(50)).toBe(true);
  });
});
