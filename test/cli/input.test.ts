/** Text files that the command line names. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readTextFile } from "../../src/cli/input.ts";
import { UserError } from "../../src/errors.ts";

const folder = mkdtempSync(join(tmpdir(), "zinc-input-"));
afterAll(() => rmSync(folder, { recursive: true }));

function write(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function refusalOf(path: string): Promise<string> {
  try {
    await readTextFile(path);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    expect(error.kind).toBe("usage");
    return error.text;
  }
  throw new Error(`${path} was read`);
}

test("a text comes as it stands in the file, with marks and line ends", async () => {
  const content = "\ufeffeins\r\nzwei\n\u0000drei 😀";
  expect(await readTextFile(write("text", content))).toBe(content);
  expect(await readTextFile(write("empty", ""))).toBe("");
});

test("what cannot be read is named with the system's reason", async () => {
  const missing = join(folder, "missing");
  expect(await refusalOf(missing)).toBe(`${missing} cannot be read (ENOENT); check the path`);
  expect(await refusalOf(folder)).toBe(`${folder} cannot be read (EISDIR); check the path`);
});

test.each([
  ["a byte that is never used", [0x41, 0xff]],
  ["an unfinished character", [0xe2, 0x82]],
  ["a surrogate", [0xed, 0xa0, 0x80]],
  ["an overlong form", [0xc0, 0xaf]],
])("%s is no UTF-8", async (_name, bytes) => {
  const path = write("bytes", Uint8Array.from(bytes));
  expect(await refusalOf(path)).toBe(
    `${path} is no valid UTF-8; convert it first, for instance with iconv`,
  );
});
