/** What people write to name a model elsewhere. */
import { describe, expect, test } from "bun:test";
import { catalog } from "../../src/store/catalog.ts";
import { isModelName } from "../../src/store/model-name.ts";
import { hubEndpoint, parseReference } from "../../src/store/reference.ts";

const hub = "https://huggingface.co";
const parse = (text: string) => parseReference(text, hub);

function urlsOf(text: string): string[] {
  const reference = parse(text);
  if (reference.kind !== "source") throw new Error(`${text} is a ${reference.kind}`);
  return reference.source.files.map(({ url }) => url);
}

describe("a file of the hub", () => {
  const url = `${hub}/owner/repo-GGUF/resolve/main/model-Q4_K_M.gguf`;

  test.each([
    "hf:owner/repo-GGUF/model-Q4_K_M.gguf",
    "hf://owner/repo-GGUF/model-Q4_K_M.gguf",
    "huggingface.co/owner/repo-GGUF/resolve/main/model-Q4_K_M.gguf",
    "https://huggingface.co/owner/repo-GGUF/blob/main/model-Q4_K_M.gguf",
    "https://hf.co/owner/repo-GGUF/resolve/main/model-Q4_K_M.gguf?download=true",
    "https://www.huggingface.co/owner/repo-GGUF/resolve/main/model-Q4_K_M.gguf#x",
  ])("%s", (text) => expect(urlsOf(text)).toEqual([url]));

  test("in a folder and of a revision", () => {
    expect(urlsOf("hf:owner/repo@v1.0/Q8 0/model.gguf")).toEqual([
      `${hub}/owner/repo/resolve/v1.0/Q8%200/model.gguf`,
    ]);
  });

  test("is all of its parts", () => {
    expect(urlsOf("hf:owner/repo/m-00002-of-00003.gguf")).toEqual(
      ["00001", "00002", "00003"].map((i) => `${hub}/owner/repo/resolve/main/m-${i}-of-00003.gguf`),
    );
  });

  test("lies on another server with HF_ENDPOINT", () => {
    const reference = parseReference("hf:a/b/c.gguf", hubEndpoint({ HF_ENDPOINT: "http://h/x/" }));
    expect(reference).toMatchObject({
      source: { name: "c", label: "hf:a/b/c.gguf", files: [{ fileName: "c.gguf" }] },
    });
    expect(reference).toHaveProperty("source.files.0.url", "http://h/x/a/b/resolve/main/c.gguf");
  });
});

describe("a repository of the hub", () => {
  test.each([
    ["hf:owner/repo", { repository: "owner/repo", revision: "main" }],
    ["hf:owner/repo:Q8_0", { quantization: "Q8_0" }],
    ["hf:owner/repo@dev:UD-Q4_K_XL", { revision: "dev", quantization: "UD-Q4_K_XL" }],
    ["https://huggingface.co/owner/repo", { repository: "owner/repo", revision: "main" }],
    ["https://huggingface.co/owner/repo/tree/dev", { revision: "dev" }],
  ])("%s", (text, repository) => {
    expect(parse(text)).toMatchObject({ kind: "repository", repository });
  });
});

describe("a file of any server", () => {
  test("keeps its address, and its query is shown nowhere", () => {
    const reference = parse("http://host:81/a/My%20Model.gguf?signature=secret");
    expect(reference).toMatchObject({
      source: {
        name: "my-model",
        label: "http://host:81/a/My%20Model.gguf",
        files: [{ url: "http://host:81/a/My%20Model.gguf?signature=secret" }],
      },
    });
  });

  test("is the file that a page of it shows", () => {
    expect(urlsOf("https://host/o/r/blob/main/m.gguf")).toEqual([
      "https://host/o/r/resolve/main/m.gguf",
    ]);
  });
});

test.each(["./mine.gguf", "mine.gguf", "/a/b", "nothing-known"])("%s is a path", (text) => {
  expect(parse(text)).toEqual({ kind: "path", path: text });
});

describe("nothing that could be fetched", () => {
  test.each([
    ["hf:owner", "owner names no model of the hub"],
    ["hf:owner/repo:Q4/x.gguf", "owner/repo:Q4/x.gguf names no model of the hub"],
    ["hf:owner/repo/readme.md", "readme.md names no .gguf file"],
    ["hf:../../etc/passwd.gguf", "../../etc/passwd.gguf names no model of the hub"],
    ["hf:owner/repo/../x.gguf", "../x.gguf names no .gguf file"],
    ["https://host/..%2f..%2fx.gguf", "/../../x.gguf names no .gguf file"],
    ["https://host/a%5Cb.gguf", "/a\\b.gguf names no .gguf file"],
    ["https://host/", "/ names no .gguf file"],
    ["https://user:pass@host/m.gguf", "the address of host holds a password"],
    ["https://", "https:// is no address"],
    ["hf:a/b/m-00001-of-99999.gguf", "m-00001-of-99999.gguf claims 99999 parts, more than"],
  ])("%s", (text, message) => {
    expect(() => parse(text)).toThrow(message);
  });

  test("HF_ENDPOINT that is no address", () => {
    expect(() => hubEndpoint({ HF_ENDPOINT: "ftp://x" })).toThrow("HF_ENDPOINT is no address");
    expect(hubEndpoint({ HF_ENDPOINT: "" })).toBe(hub);
  });
});

describe("the catalog", () => {
  test("has names, files and hashes that can be what they are", () => {
    for (const { name, repository, file, sizeBytes, sha256 } of catalog) {
      expect(isModelName(name)).toBe(true);
      expect(name).toBe(name.toLowerCase());
      expect(repository).toMatch(/^[\w.-]+\/[\w.-]+$/);
      expect(file).toMatch(/^[\w.-]+\.gguf$/);
      expect(sha256 ?? "0".repeat(64)).toMatch(/^[0-9a-f]{64}$/);
      expect(sizeBytes ?? 1e9).toBeGreaterThan(3e8);
    }
    const names = catalog.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBeGreaterThanOrEqual(15);
    const hashes = catalog.flatMap(({ sha256 }) => sha256 ?? []);
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test("is asked before the disk, and knows the hash", () => {
    const entry = catalog.find(({ name }) => name === "llama-3.1-8b");
    const { sizeBytes, sha256 } = entry ?? {};
    expect(parse("Llama-3.1-8B")).toMatchObject({
      source: { name: "llama-3.1-8b", files: [{ sizeBytes, sha256 }] },
    });
  });
});
