/** The folder of models: names, what is found, imported, chosen and removed. */
import { describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { readActive, writeActive } from "../../src/store/active-model.ts";
import { importModel } from "../../src/store/local-import.ts";
import { isModelName, nameOfFile, requireModelName } from "../../src/store/model-name.ts";
import { forgeSplit } from "../helpers/gguf-forge.ts";
import { emptyStore, modelBytes } from "./pull-setup.ts";

describe("a name", () => {
  test.each(["m", "qwen3.5-2b", "A_b-C.9", "x".repeat(100)])("may be %s", (name) => {
    expect(isModelName(name)).toBe(true);
    expect(requireModelName(name)).toBe(name.toLowerCase());
  });

  test.each(["", ".", "..", ".partial", "-m", "a/b", "a\\b", "a b", "m.gguf", "m.", "ä", "a:b"])(
    "may not be %j",
    (name) => {
      expect(isModelName(name)).toBe(false);
      expect(() => requireModelName(name)).toThrow("cannot name a model");
    },
  );

  test("may not be that of the model inside", () => {
    expect(() => requireModelName("Spark")).toThrow("Spark is the model inside zinc");
  });

  test.each([
    ["/x/Qwen3-8B-Q4_K_M-00001-of-00003.gguf", "qwen3-8b-q4_k_m"],
    ["My Model (2).GGUF", "my-model-2"],
    ["...gguf", "model"],
    ["模型.gguf", "model"],
  ])("of %s is %s", (path, name) => expect(nameOfFile(path)).toBe(name));
});

describe("the store", () => {
  test("of a folder that is not there is empty", () => {
    using store = emptyStore();
    expect(store.list()).toEqual([]);
    expect(store.partials()).toEqual([]);
    expect(store.find("../etc")).toBeUndefined();
  });

  test("has what people put there themselves", () => {
    using store = emptyStore();
    mkdirSync(join(store.folder, "mine"));
    writeFileSync(join(store.folder, "mine/b.gguf"), "12345");
    writeFileSync(join(store.folder, "mine/model.json"), "{");
    mkdirSync(join(store.folder, "empty"));
    writeFileSync(join(store.folder, "loose.gguf"), "1");
    expect(store.list()).toEqual([
      {
        name: "mine",
        path: join(store.folder, "mine/b.gguf"),
        sizeBytes: 5,
        files: [{ name: "b.gguf", bytes: 5, sha256: undefined }],
        source: undefined,
        added: undefined,
      },
    ]);
    expect(store.find("MINE")?.name).toBe("mine");
    expect(store.findByPath(join(store.folder, "mine/b.gguf"))?.name).toBe("mine");
    expect(store.findByPath("/elsewhere/mine/b.gguf")).toBeUndefined();
  });

  test("removes a model with all that belongs to it, once", () => {
    using store = emptyStore();
    mkdirSync(join(store.folder, "mine"));
    writeFileSync(join(store.folder, "mine/b.gguf"), "12345");
    expect(store.remove("mine")).toBe(true);
    expect(existsSync(join(store.folder, "mine"))).toBe(false);
    expect(readdirSync(join(store.folder, ".partial"))).toEqual([]);
    expect(store.remove("mine")).toBe(false);
  });

  test("removes nothing that is being downloaded", () => {
    using store = emptyStore();
    const journal = store.tryLock("m");
    expect(() => store.remove("m")).toThrow("m is being downloaded by another process");
    journal?.remove();
  });
});

describe("a file of this machine", () => {
  const place = {
    force: false,
    signal: new AbortController().signal,
    onWait: () => {},
    onProgress: () => {},
  };

  test("is the same bytes under a second name, and stays when that goes", async () => {
    using store = emptyStore();
    const path = join(store.folder, "original.gguf");
    writeFileSync(path, modelBytes);
    const { model, isNew } = await importModel(store, path, "mine", place);
    expect(isNew).toBe(true);
    expect(model).toMatchObject({ name: "mine", source: path, sizeBytes: modelBytes.length });
    expect(statSync(model.path).ino).toBe(statSync(path).ino);
    expect((await importModel(store, path, "mine", place)).isNew).toBe(false);
    store.remove("mine");
    expect(readFileSync(path).equals(modelBytes)).toBe(true);
  });

  test("behind a symbolic link has the link's name and the file's bytes", async () => {
    using store = emptyStore();
    writeFileSync(join(store.folder, "blob"), modelBytes);
    symlinkSync(join(store.folder, "blob"), join(store.folder, "named.gguf"));
    const { model } = await importModel(store, join(store.folder, "named.gguf"), "mine", place);
    expect(model.path).toBe(join(store.folder, "mine/named.gguf"));
    expect(readFileSync(model.path).equals(modelBytes)).toBe(true);
  });

  test("in parts comes whole", async () => {
    using store = emptyStore();
    const tensor = (name: string) => ({ name, dims: [8], type: "F32" as const });
    for (const [i, part] of forgeSplit([], [[tensor("a")], [tensor("b")]]).entries()) {
      writeFileSync(join(store.folder, `m-0000${i + 1}-of-00002.gguf`), part);
    }
    const second = join(store.folder, "m-00002-of-00002.gguf");
    const { model } = await importModel(store, second, "mine", place);
    expect(model.files.map(({ name }) => name)).toEqual([
      "m-00001-of-00002.gguf",
      "m-00002-of-00002.gguf",
    ]);
  });

  test("that is no model is refused, and leaves nothing", async () => {
    using store = emptyStore();
    const path = join(store.folder, "no.gguf");
    writeFileSync(path, "no model at all");
    await expect(importModel(store, path, "mine", place)).rejects.toMatchObject({ kind: "model" });
    expect(store.list()).toEqual([]);
  });
});

describe("the active model", () => {
  test("is a line in a file whose other lines stay", () => {
    using store = emptyStore();
    const config = join(store.folder, "config");
    expect(readActive(config)).toBeUndefined();
    writeActive(config, "a");
    expect(readActive(config)).toBe("a");
    const path = join(config, "config.json");
    writeFileSync(path, JSON.stringify({ other: 1, model: "b" }));
    writeActive(config, undefined);
    expect(readFileSync(path, "utf8")).toBe('{\n  "other": 1\n}\n');
    expect(readdirSync(config)).toEqual(["config.json"]);
  });

  test.each(["{", "3", '{"model":3}'])("in a file that is %j is an error that names it", (text) => {
    using store = emptyStore();
    writeFileSync(join(store.folder, "config.json"), text);
    expect(() => readActive(store.folder)).toThrow("config.json is no configuration");
  });

  test("without a home is none", () => expect(readActive(undefined)).toBeUndefined());
});
