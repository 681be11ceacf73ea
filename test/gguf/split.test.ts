/**
 * Models in several files: joined from any part, and refused when the parts do not belong together.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGguf, openGgufBytes } from "../../src/gguf/file.ts";
import { refusalOf } from "../helpers/bad-model.ts";
import {
  forgeGguf,
  forgeSplit,
  scalar,
  splitPairs,
  text,
  type ForgedFile,
  type ForgedTensor,
} from "../helpers/gguf-forge.ts";
import { SeededRandom } from "../helpers/seeded-random.ts";

const root = mkdtempSync(join(tmpdir(), "zinc-split-"));
afterAll(() => rmSync(root, { recursive: true }));

const tensor = (name: string, seed: number): ForgedTensor => ({
  name,
  dims: [8],
  type: "F32",
  bytes: new SeededRandom(seed).bytes(32),
});

const pairs = [
  ["general.architecture", text("llama")],
  ["general.name", text("whole")],
] as const satisfies ForgedFile["pairs"];
const groups = [
  [tensor("a", 1), tensor("b", 2)],
  [tensor("c", 3)],
  [tensor("d", 4), tensor("e", 5)],
] as const;
const parts = forgeSplit(pairs, groups);
const nameOf = (index: number, count = 3) =>
  `m-${String(index + 1).padStart(5, "0")}-of-${String(count).padStart(5, "0")}.gguf`;

let folderCount = 0;

/** A new folder with these files. */
function folder(files: Record<string, Uint8Array>): string {
  const path = join(root, String(folderCount++));
  mkdirSync(path);
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(path, name), bytes);
  return path;
}

/** The three valid parts, with some replaced or (undefined) left out. */
function threeParts(changes: Record<number, Uint8Array | undefined> = {}): string {
  const files: Record<string, Uint8Array> = {};
  for (const [i, bytes] of parts.entries()) {
    const chosen = i in changes ? changes[i] : bytes;
    if (chosen !== undefined) files[nameOf(i)] = chosen;
  }
  return folder(files);
}

describe("a split model", () => {
  test.each([0, 1, 2])("is one model, opened from part index %i", (index) => {
    const path = threeParts();
    using file = openGguf(join(path, nameOf(index)));
    expect(file.metadata.string("general.name")).toBe("whole");
    expect(file.fileNames).toEqual([0, 1, 2].map((i) => join(path, nameOf(i))));
    expect(file.tensors.map((t) => [t.name, t.fileIndex])).toEqual([
      ["a", 0],
      ["b", 0],
      ["c", 1],
      ["d", 2],
      ["e", 2],
    ]);
    expect(file.sizeBytes).toBe(parts.reduce((sum, part) => sum + part.length, 0));
    for (const [i, t] of file.tensors.entries()) {
      expect(file.readTensorSync(t)).toEqual(new SeededRandom(i + 1).bytes(32));
    }
  });

  test("may have a first part without tensors", () => {
    const path = folder({});
    for (const [i, bytes] of forgeSplit(pairs, [[], [tensor("a", 1)]]).entries()) {
      writeFileSync(join(path, nameOf(i, 2)), bytes);
    }
    using file = openGguf(join(path, nameOf(0, 2)));
    expect(file.tensors.map((t) => t.fileIndex)).toEqual([1]);
  });

  test("may be one part of one, under any name", () => {
    const [bytes] = forgeSplit(pairs, [[tensor("a", 1)]]);
    const path = folder({ "any.gguf": bytes ?? new Uint8Array() });
    using file = openGguf(join(path, "any.gguf"));
    expect(file.tensors.length).toBe(1);
  });

  test("is whole if only its name looks split", () => {
    const path = folder({ [nameOf(1)]: forgeGguf({ pairs, tensors: [tensor("a", 1)] }) });
    using file = openGguf(join(path, nameOf(1)));
    expect(file.fileNames).toEqual([join(path, nameOf(1))]);
  });
});

const otherSplit = forgeSplit(pairs, [[tensor("a", 1)], [tensor("x", 8)], [tensor("y", 9)]]);
const repeated = forgeSplit(pairs, [groups[0], [tensor("a", 1)], groups[2]]);
const otherArchitecture = forgeGguf({
  pairs: [["general.architecture", text("qwen35")], ...splitPairs(1, 3, 5)],
  tensors: [tensor("c", 3)],
});
const partWith = (index: number, count: number) =>
  forgeGguf({ pairs: splitPairs(index, count, 5), tensors: [tensor("c", 3)] });

describe("is refused:", () => {
  const cases: readonly [name: string, path: string, message: string][] = [
    [
      "part 2 missing",
      threeParts({ 1: undefined }),
      "is split, and part 2 is missing: cannot open",
    ],
    ["part 3 missing", threeParts({ 2: undefined }), "; download all parts into the same folder"],
    ["part 2 of another split", threeParts({ 1: otherSplit[1] }), `does not belong to`],
    [
      "part 2 of another split, in numbers",
      threeParts({ 1: otherSplit[1] }),
      "split.tensors.count is 3, not 5; take all parts from one download",
    ],
    ["part 2 of four", threeParts({ 1: partWith(1, 4) }), "it is one of 4 parts, not of 3"],
    [
      "part 3 under the name of part 2",
      threeParts({ 1: parts[2] }),
      "it is part 3 by its metadata and 2 by its name",
    ],
    [
      "a whole model in place of part 2",
      threeParts({ 1: forgeGguf({ tensors: [tensor("c", 3)] }) }),
      "it is not a part of a split model",
    ],
    [
      "another architecture in part 2",
      threeParts({ 1: otherArchitecture }),
      "general.architecture is qwen35, not llama",
    ],
    ["a tensor in two parts", threeParts({ 1: repeated[1] }), "tensor a is also in "],
    [
      "too few tensors in all",
      threeParts({ 1: forgeGguf({ pairs: splitPairs(1, 3, 5) }) }),
      "the 3 parts hold 4 tensors, not 5",
    ],
    [
      "part 2 cut off",
      threeParts({ 1: parts[1]?.slice(0, -1) }),
      `${nameOf(1)}: truncated: needs 1 more byte`,
    ],
    [
      "part 2 that is a web page",
      threeParts({ 1: new TextEncoder().encode("<!DOCTYPE html>") }),
      `${nameOf(1)} is not GGUF: it looks like a web page`,
    ],
    ["part 2 that is empty", threeParts({ 1: new Uint8Array() }), `${nameOf(1)} is empty`],
    ["a part of 1000", threeParts({ 0: partWith(0, 1000) }), "claims 1000 parts, more than 512"],
    ["part 5 of 3", threeParts({ 0: partWith(4, 3) }), "claims to be part 5 of 3"],
    [
      "a part of a larger split by its metadata",
      threeParts({ 0: partWith(0, 4) }),
      "is part 1 of 4 of a split model but is not named so",
    ],
    [
      "a part number that is text",
      threeParts({ 0: forgeGguf({ pairs: [["split.no", text("0")]] }) }),
      "metadata split.no must be an integer and is string",
    ],
    [
      "a negative part number",
      threeParts({
        0: forgeGguf({
          pairs: [
            ["split.count", scalar("u16", 3)],
            ["split.no", scalar("i16", -1)],
          ],
        }),
      }),
      "metadata split.no is out of range: -1",
    ],
  ];

  test.each(cases)("%s", (_, path, message) => {
    expect(refusalOf(() => openGguf(join(path, nameOf(0))), path)).toContain(message);
  });

  test("a part that lost its name says what it must be called", () => {
    const path = folder({ "model.gguf": parts[1] ?? new Uint8Array() });
    expect(refusalOf(() => openGguf(join(path, "model.gguf")), path)).toBe(
      `${path}/model.gguf: is part 2 of 3 of a split model but is not named so; ` +
        `rename it to ${path}/model-00002-of-00003.gguf, beside the other parts`,
    );
  });

  test("a later part without the first names the first", () => {
    const path = threeParts({ 0: undefined });
    expect(refusalOf(() => openGguf(join(path, nameOf(2))), path)).toContain(
      `is split, and part 1 is missing: cannot open ${join(path, nameOf(0))}: no such file`,
    );
  });

  test("a part in memory", () => {
    const open = () => openGgufBytes("part", parts[0] ?? new Uint8Array());
    expect(refusalOf(open, "part")).toContain("cannot be read from memory");
  });
});
