/** Recorded programs: what they compute, how many barriers they need, what they refuse. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/errors.ts";
import { DeviceBuffer, hostBytes, type BufferSlice } from "../../src/vulkan/buffer.ts";
import { Profiler } from "../../src/vulkan/profiler.ts";
import { Program } from "../../src/vulkan/program.ts";
import { appendSum } from "../helpers/adder.ts";
import { noGpu, testGpu } from "../helpers/gpu.ts";
import { ownedByEachTest } from "../helpers/owned.ts";

const own = ownedByEachTest();

function room(...floats: number[]): BufferSlice {
  const buffer = own(new DeviceBuffer(testGpu().device, 1024, "readback", "a test"));
  buffer.bytes?.set(new Uint8Array(Float32Array.from(floats).buffer));
  return buffer.slice();
}

function floatsIn(slice: BufferSlice, count: number): number[] {
  return Array.from(new Float32Array(hostBytes(slice).slice(0, count * 4).buffer));
}

function newProgram(clocks = {}): Program {
  const { device, pipelines } = testGpu();
  return own(new Program(device, pipelines, "test", clocks));
}

function run(program: Program): void {
  const { timeline } = testGpu();
  timeline.wait(timeline.submit(program.commands, program.label));
}

describe.skipIf(noGpu !== undefined)("a program", () => {
  test("of a fill and two copies has a barrier before what depends on another", () => {
    const [a, b, c] = [room(1), room(2), room(3)];
    const program = newProgram();
    program.fill(a, 0x40a00000);
    expect(program.barrierCount).toBe(0);
    program.copy(a, b);
    expect(program.barrierCount).toBe(1);
    program.copy(a, c);
    expect(program.barrierCount).toBe(1);
    run(program.seal());
    expect([b, c].map((slice) => floatsIn(slice, 2))).toEqual([
      [5, 5],
      [5, 5],
    ]);
    expect(program.dispatchCount).toBe(0);
  });

  test("fills and copies parts, and nothing beside them", () => {
    const a = room(1, 2, 3, 4);
    const part = { buffer: a.buffer, offset: 4, byteSize: 4 };
    const program = newProgram();
    program.fill(part);
    program.copy(part, { buffer: a.buffer, offset: 12, byteSize: 4 });
    run(program.seal());
    expect(floatsIn(a, 4)).toEqual([1, 0, 3, 0]);
  });

  test("counts dispatches, and puts those that are independent between the same barriers", () => {
    const [a, b, x, y] = [room(1, 2, 3, 4), room(10, 20, 30, 40), room(), room()];
    const program = newProgram();
    appendSum(program, { a, b, y: x });
    appendSum(program, { a, b: a, y });
    expect([program.dispatchCount, program.barrierCount]).toEqual([2, 0]);
    appendSum(program, { a: x, b, y });
    expect([program.dispatchCount, program.barrierCount]).toEqual([3, 1]);
    run(program.seal());
    expect(floatsIn(x, 4)).toEqual([11, 22, 33, 44]);
    expect(floatsIn(y, 4)).toEqual([21, 42, 63, 84]);
  });

  test("reads what it left behind when it is submitted again", () => {
    const [a, sum] = [room(1, 2, 3, 4), room(100, 100, 100, 100)];
    const program = newProgram();
    appendSum(program, { a, b: sum, y: sum });
    program.seal();
    run(program);
    run(program);
    run(program);
    expect(floatsIn(sum, 4)).toEqual([103, 106, 109, 112]);
  });

  test("sees what the host writes between submissions", () => {
    const [a, b, y] = [room(1), room(50), room()];
    const program = newProgram();
    appendSum(program, { a, b, y }, { count: 1 });
    run(program.seal());
    hostBytes(b).set(new Uint8Array(Float32Array.of(70).buffer));
    run(program);
    expect(floatsIn(y, 1)).toEqual([71]);
  });

  test("starts over with reset", () => {
    const [a, b] = [room(1), room(2)];
    const program = newProgram();
    program.fill(a, 0);
    program.copy(a, b);
    run(program.seal());
    program.reset().fill(b, 0x40a00000);
    expect([program.dispatchCount, program.barrierCount]).toEqual([0, 0]);
    run(program.seal());
    expect([floatsIn(a, 1), floatsIn(b, 1)]).toEqual([[0], [5]]);
  });

  test("that is sealed refuses everything", () => {
    const [a, b] = [room(1), room(2)];
    const program = newProgram().seal();
    const refusal = new InvariantError("program test is sealed");
    expect(() => program.fill(a)).toThrow(refusal);
    expect(() => program.copy(a, b)).toThrow(refusal);
    expect(() => appendSum(program, { a, b: a, y: b })).toThrow(refusal);
    expect(() => program.seal()).toThrow("program test is sealed already");
    run(program);
  });

  test("with a profiler has each dispatch alone between barriers", () => {
    const [a, x, y] = [room(1), room(), room()];
    const profiler = own(new Profiler(testGpu().device, 8));
    const program = newProgram({ profiler });
    appendSum(program, { a, b: a, y: x });
    appendSum(program, { a, b: a, y });
    expect([program.dispatchCount, program.barrierCount]).toEqual([2, 2]);
    run(program.seal());
  });

  test("refuses copies of unequal sizes", () => {
    const [a, b] = [room(), room()];
    expect(() => newProgram().copy({ ...a, byteSize: 8 }, b)).toThrow("copy of 8 to 1024 bytes");
  });

  test.each([
    ["none", [0]],
    ["none along y", [1, 0]],
    ["more than the device takes", [2 ** 31]],
  ] as const)("refuses workgroups: %s", (_, groups) => {
    const a = room();
    const dispatch = () =>
      appendSum(newProgram(), { a, b: a, y: a }, { groups, label: "too much" });
    expect(dispatch).toThrow(/^too much: \d+ × \d+ × 1 workgroups$/);
  });

  test("that a failing recording leaves behind is freed", () => {
    const fails = () =>
      testGpu().run("fails", () => {
        throw new Error("as wanted");
      });
    expect(fails).toThrow("as wanted");
  });
});
