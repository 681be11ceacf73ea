/**
 * Opening and reading files: what the system can refuse, files over 4 GiB, several reads in flight.
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InvariantError, UserError } from "../../src/errors.ts";
import { openGguf, openGgufBytes } from "../../src/gguf/file.ts";
import { refusalOf } from "../helpers/bad-model.ts";
import { forgeGguf } from "../helpers/gguf-forge.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

const root = mkdtempSync(join(tmpdir(), "zinc-file-"));
afterAll(() => rmSync(root, { recursive: true }));

const weights = new SeededRandom(5).bytes(2 ** 20);
const bytes = forgeGguf({ tensors: [{ name: "w", dims: [2 ** 18], type: "F32", bytes: weights }] });
const path = join(root, "m.gguf");
writeFileSync(path, bytes);
const weightsAt = bytes.length - weights.length;

describe("is refused:", () => {
  mkdirSync(join(root, "folder"));
  mkdirSync(join(root, "models"));
  writeFileSync(join(root, "models", "b.gguf"), "");
  writeFileSync(join(root, "models", "a.gguf"), "");
  symlinkSync(join(root, "nowhere"), join(root, "dangling.gguf"));
  symlinkSync(join(root, "circle.gguf"), join(root, "circle.gguf"));

  test.each([
    ["a missing file", "missing.gguf", "cannot open FILE: no such file; check the path"],
    ["a file below a file", "m.gguf/x", "cannot open FILE: no such file; check the path"],
    ["a link to nowhere", "dangling.gguf", "cannot open FILE: no such file; check the path"],
    ["a link to itself", "circle.gguf", "cannot open FILE: its symbolic links go in circles"],
    ["a name that is too long", "n".repeat(300), "cannot open FILE: the name is too long"],
    ["a folder", "folder", "FILE is a directory; name a .gguf file"],
    [
      "a folder with models",
      "models",
      "FILE is a directory; name a file in it, such as FILE/a.gguf",
    ],
  ])("%s", (_, name, message) => {
    const file = join(root, name);
    expect(refusalOf(() => openGguf(file), file)).toBe(message.replaceAll("FILE", file));
  });

  test("an empty path", () => {
    expect(refusalOf(() => openGguf(""), "")).toContain("no such file");
  });

  test("a path with a zero byte", () => {
    expect(refusalOf(() => openGguf("a\0b"), "a\\x00b")).toContain("cannot open a\\x00b");
  });

  test("a device", () => {
    const line = refusalOf(() => openGguf("/dev/null"), "/dev/null");
    expect(line).toBe("/dev/null is not a regular file");
  });

  test.skipIf(process.getuid?.() === 0)("a file without permission (not as root)", () => {
    const locked = join(root, "locked.gguf");
    writeFileSync(locked, bytes);
    chmodSync(locked, 0);
    const line = refusalOf(() => openGguf(locked), locked);
    expect(line).toContain("permission denied; make it readable");
  });

  test.skipIf(process.platform !== "linux")("a broken file, without leaving it open", () => {
    const broken = join(root, "broken.gguf");
    writeFileSync(broken, bytes.slice(0, 1000));
    const before = readdirSync("/proc/self/fd").length;
    refusalOf(() => openGguf(broken), broken);
    expect(readdirSync("/proc/self/fd").length).toBe(before);
  });
});

describe("reading", () => {
  test("fills the caller's memory, at once or later", async () => {
    using file = openGguf(path);
    const memory = new Uint8Array(100).fill(7);
    file.readIntoSync(memory.subarray(10, 20), 0, weightsAt + 5);
    expect(memory.subarray(10, 20)).toEqual(weights.subarray(5, 15));
    await file.readInto(memory.subarray(30, 40), 0, weightsAt + 50);
    expect(memory.subarray(30, 40)).toEqual(weights.subarray(50, 60));
    expect(memory[9]).toBe(7);
    expect(memory[20]).toBe(7);
    expect(memory[40]).toBe(7);
  });

  test("may have many reads in flight", async () => {
    using file = openGguf(path);
    const memory = new Uint8Array(weights.length);
    const step = 2 ** 16;
    const reads = Array.from({ length: 16 }, (_, i) =>
      file.readInto(memory.subarray(i * step, (i + 1) * step), 0, weightsAt + i * step),
    );
    await Promise.all(reads);
    expect(memory).toEqual(weights);
  });

  test("of nothing is fine, also at the end", async () => {
    using file = openGguf(path);
    file.readIntoSync(new Uint8Array(0), 0, bytes.length);
    await file.readInto(new Uint8Array(0), 0, 0);
  });

  test("goes on to the end when the file is closed meanwhile", async () => {
    const file = openGguf(path);
    const memory = new Uint8Array(weights.length);
    const reading = file.readInto(memory, 0, weightsAt);
    file.close();
    await reading;
    expect(memory).toEqual(weights);
  });

  test("after closing, or outside the file, is our own bug", () => {
    const file = openGguf(path);
    expect(() => file.readIntoSync(new Uint8Array(1), 0, bytes.length)).toThrow(InvariantError);
    expect(() => file.readIntoSync(new Uint8Array(1), 0, -1)).toThrow(InvariantError);
    expect(() => file.readIntoSync(new Uint8Array(1), 1, 0)).toThrow(InvariantError);
    file.close();
    file.close();
    expect(() => file.readIntoSync(new Uint8Array(1), 0, 0)).toThrow("after it was closed");
    expect(file.readInto(new Uint8Array(1), 0, 0)).rejects.toThrow("after it was closed");
  });

  test("says so when the file has shrunk since it was opened", async () => {
    const shrinking = join(root, "shrinking.gguf");
    writeFileSync(shrinking, bytes);
    using file = openGguf(shrinking);
    truncateSync(shrinking, weightsAt + 100);
    const memory = new Uint8Array(200);
    const message = `${shrinking} became shorter than ${weightsAt + 200} bytes while it was read`;
    expect(() => file.readIntoSync(memory, 0, weightsAt)).toThrow(message);
    const failed = await file.readInto(memory, 0, weightsAt).catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(UserError);
    expect((failed as UserError).message).toBe(message);
  });

  test("does not mind bytes behind the last tensor", () => {
    const longer = join(root, "longer.gguf");
    writeFileSync(longer, bytes);
    appendFileSync(longer, "more");
    using file = openGguf(longer);
    expect(file.sizeBytes).toBe(bytes.length + 4);
  });

  test("works the same for a model in memory", async () => {
    using file = openGgufBytes("built in", bytes);
    const memory = new Uint8Array(10);
    await file.readInto(memory, 0, weightsAt);
    expect(memory).toEqual(weights.subarray(0, 10));
    const [tensor] = file.tensors;
    expect(tensor && file.readTensorSync(tensor)).toEqual(weights);
  });

  test("reaches beyond 4 GiB", async () => {
    const far = 5 * 2 ** 30;
    const large = join(root, "large.gguf");
    const header = forgeGguf({ tensors: [{ name: "w", dims: [2], type: "F32", offset: far }] });
    writeFileSync(large, header);
    // A hole, so the file takes no room on the disk.
    const handle = openSync(large, "r+");
    ftruncateSync(handle, header.length + far + 8);
    using before = openGguf(large);
    const [tensor] = before.tensors;
    const at = tensor?.offsetBytes ?? 0;
    expect(at).toBeGreaterThan(far);
    writeSync(handle, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8), 0, 8, at);
    closeSync(handle);
    expect(tensor && before.readTensorSync(tensor)).toEqual(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8));
    const memory = new Uint8Array(4);
    await before.readInto(memory, 0, at + 4);
    expect(memory).toEqual(Uint8Array.of(5, 6, 7, 8));
  });
});
