/** Which of a repository's files is meant, and what the hub says of it. */
import { describe, expect, test } from "bun:test";
import { choose, lookUp } from "../../src/store/hub.ts";
import { FileServer } from "../helpers/file-server.ts";
import { noAccess, retrying } from "./pull-setup.ts";

const wanted = (quantization?: string) => ({
  repository: "owner/repo",
  revision: "main",
  quantization,
});

const files = [
  "README.md",
  "imatrix_unsloth.gguf",
  "mmproj-F16.gguf",
  "m-Q8_0.gguf",
  "m-UD-Q4_K_M.gguf",
  "m-Q4_K_M.gguf",
  "BF16/m-BF16-00001-of-00002.gguf",
  "BF16/m-BF16-00002-of-00002.gguf",
];

describe("of many files", () => {
  test.each([
    [undefined, "m-Q4_K_M.gguf"],
    ["q8_0", "m-Q8_0.gguf"],
    ["UD-Q4_K_M", "m-UD-Q4_K_M.gguf"],
    ["BF16", "BF16/m-BF16-00001-of-00002.gguf"],
  ])("%p means %s", (quantization, path) => {
    expect(choose(files, wanted(quantization))).toBe(path);
  });

  test("none means Q3_K_S, and the message names those that are there", () => {
    expect(() => choose(files, wanted("Q3_K_S"))).toThrow("owner/repo has no Q3_K_S");
    expect(choose(["only-F16.gguf"], wanted())).toBe("only-F16.gguf");
    expect(() => choose(["README.md"], wanted())).toThrow("owner/repo has no .gguf files");
  });
});

describe("the list of the hub", () => {
  const oid = "ab".repeat(32);

  test("gives sizes and hashes", async () => {
    const list = [
      { type: "directory", path: "x" },
      { type: "file", path: "m-Q4_K_M.gguf", size: 7, lfs: { oid } },
    ];
    await using server = await FileServer.start(() => ({
      status: 200,
      body: JSON.stringify(list),
    }));
    expect(await lookUp(wanted(), server.url, noAccess, retrying())).toEqual({
      name: "m-q4_k_m",
      label: "hf:owner/repo/m-Q4_K_M.gguf",
      files: [
        {
          url: `${server.url}/owner/repo/resolve/main/m-Q4_K_M.gguf`,
          fileName: "m-Q4_K_M.gguf",
          sizeBytes: 7,
          sha256: oid,
        },
      ],
    });
    expect(server.asked[0]?.path).toBe("/api/models/owner/repo/tree/main?recursive=true");
  });

  test.each(["<html>", "[]x", '{"error":"x"}'])("that is %j is refused", async (body) => {
    await using server = await FileServer.start(() => ({ status: 200, body }));
    await expect(lookUp(wanted(), server.url, noAccess, retrying())).rejects.toThrow(
      "the hub's list of the files of owner/repo cannot be understood",
    );
  });
});
