/** Downloads that end early, and what the next one finds of them. */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Journal } from "../../src/store/journal.ts";
import type { ModelStore } from "../../src/store/model-store.ts";
import { cannotWrite, openPartFile, type PartFile } from "../../src/store/part-file.ts";
import type { PullOptions } from "../../src/store/pull.ts";
import { fileAnswer, FileServer, type Asked } from "../helpers/file-server.ts";
import { emptyStore, forgeModel, modelBytes, pull, sha256, sourceAt } from "./pull-setup.ts";

const good = (asked: Asked) => fileAnswer(modelBytes, asked);

/** Bytes of the file that a server was asked for, without the first ones that tell what it is. */
function askedBytes(asked: readonly Asked[]): number {
  const sizes = asked.map(({ range }) => (range === undefined ? 0 : range.end - range.start));
  return sizes.filter((size) => size !== 1024).reduce((sum, size) => sum + size, 0);
}

/** Stops a pull when this many bytes are there; true if it ended with the reason of the signal. */
async function stopAt(
  bytes: number,
  store: ModelStore,
  url: string,
  options: Partial<PullOptions> = {},
): Promise<boolean> {
  const stop = new AbortController();
  const reason = new Error("stopped");
  const outcome = await pull(store, sourceAt(url, options.force ? {} : known), {
    signal: stop.signal,
    onProgress: (_phase, doneBytes) => {
      if (doneBytes >= bytes) stop.abort(reason);
    },
    ...options,
  }).catch((error: unknown) => error);
  return outcome === reason;
}

const known = { sha256: sha256(modelBytes) };

describe("a download that was stopped", () => {
  test("goes on where it ended", async () => {
    await using server = await FileServer.start(good);
    using store = emptyStore();
    const url = `${server.url}/m.gguf`;
    expect(await stopAt(3_000_000, store, url)).toBe(true);
    expect(store.list()).toEqual([]);
    const [partial] = store.partials();
    expect(partial).toMatchObject({ name: "m", totalBytes: modelBytes.length });
    expect(partial?.doneBytes).toBeGreaterThanOrEqual(3_000_000);
    server.asked.length = 0;
    const { model } = await pull(store, sourceAt(url, known));
    expect(readFileSync(model.path).equals(modelBytes)).toBe(true);
    expect(askedBytes(server.asked)).toBe(modelBytes.length - (partial?.doneBytes ?? 0));
    expect(store.partials()).toEqual([]);
  });

  test("goes on although the address is another by now", async () => {
    await using server = await FileServer.start(good);
    await using mirror = await FileServer.start(good);
    using store = emptyStore();
    expect(await stopAt(3_000_000, store, `${server.url}/m.gguf`)).toBe(true);
    await pull(store, sourceAt(`${mirror.url}/m.gguf`, known));
    expect(askedBytes(mirror.asked)).toBeLessThan(modelBytes.length - 2_900_000);
  });

  test("begins anew when the file has changed", async () => {
    const other = forgeModel(2);
    let isChanged = false;
    await using server = await FileServer.start((asked) =>
      isChanged ? fileAnswer(other, asked, '"v2"') : good(asked),
    );
    using store = emptyStore();
    const url = `${server.url}/m.gguf`;
    expect(await stopAt(3_000_000, store, url, { force: true })).toBe(true);
    isChanged = true;
    const { model } = await pull(store, sourceAt(url));
    expect(readFileSync(model.path).equals(other)).toBe(true);
  });

  test("begins anew when its journal is damaged, or its file is gone", async () => {
    await using server = await FileServer.start(good);
    using store = emptyStore();
    const url = `${server.url}/m.gguf`;
    expect(await stopAt(3_000_000, store, url)).toBe(true);
    writeFileSync(join(store.folder, ".partial/m.journal"), "x".repeat(5000));
    expect(await stopAt(1_000_000, store, url)).toBe(true);
    writeFileSync(join(store.folder, ".partial/m/m.gguf"), "");
    const { model } = await pull(store, sourceAt(url, known));
    expect(readFileSync(model.path).equals(modelBytes)).toBe(true);
  });

  test("before its first byte leaves nothing", async () => {
    await using server = await FileServer.start(() => ({ status: 404 }));
    using store = emptyStore();
    await expect(pull(store, sourceAt(`${server.url}/m.gguf`))).rejects.toThrow("404");
    expect(readdirSync(join(store.folder, ".partial"))).toEqual([]);
  });
});

describe("a disk that is full", () => {
  /** Takes this many bytes in all. */
  function disk(freeBytes: number) {
    let left = freeBytes;
    return async (path: string): Promise<PartFile> => {
      const file = await openPartFile(path);
      return {
        write: async (bytes, offset) => {
          left -= bytes.length;
          if (left < 0) throw cannotWrite(path, Object.assign(new Error(), { code: "ENOSPC" }));
          await file.write(bytes, offset);
        },
        flush: () => file.flush(),
        [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
      };
    };
  }

  test("ends it with a message, and what is there is used the next time", async () => {
    await using server = await FileServer.start(good);
    using store = emptyStore();
    const source = sourceAt(`${server.url}/m.gguf`, known);
    const failed = pull(store, source, { openPart: disk(2_500_000) });
    await expect(failed).rejects.toMatchObject({
      kind: "failed",
      text: expect.stringMatching(
        /m\.gguf cannot be written: the disk is full; free some space; the same command then goes/,
      ),
    });
    expect(store.list()).toEqual([]);
    server.asked.length = 0;
    const { model } = await pull(store, source);
    expect(readFileSync(model.path).equals(modelBytes)).toBe(true);
    expect(askedBytes(server.asked)).toBeLessThan(modelBytes.length - 1_000_000);
  });

  test("is found out before the first byte, if the size is known", async () => {
    await using server = await FileServer.start(() => ({
      status: 206,
      headers: { "content-range": `bytes 0-1023/${2 ** 45}`, "content-length": 1024 },
      body: modelBytes.subarray(0, 1024),
    }));
    using store = emptyStore();
    await expect(pull(store, sourceAt(`${server.url}/m.gguf`))).rejects.toThrow(
      /^m needs 35.2 TB more, and .* has .* free$/,
    );
    expect(server.asked).toHaveLength(1);
  });
});

describe("two downloads of one model", () => {
  test("at once: the second waits, and finds it there", async () => {
    await using server = await FileServer.start(good);
    using store = emptyStore();
    const source = sourceAt(`${server.url}/m.gguf`, known);
    const waits: string[] = [];
    const [first, second] = await Promise.all([
      pull(store, source),
      pull(store, source, { onWait: () => waits.push("waits") }),
    ]);
    expect([first.isNew, second.isNew]).toEqual([true, false]);
    expect(waits).toEqual(["waits"]);
    expect(askedBytes(server.asked)).toBe(modelBytes.length);
    expect(existsSync(join(store.folder, ".partial/m.journal"))).toBe(false);
  });

  test("from two places: the second is refused, unless it is forced", async () => {
    const other = forgeModel(2);
    await using server = await FileServer.start((asked) =>
      asked.path === "/m.gguf" ? good(asked) : fileAnswer(other, asked),
    );
    using store = emptyStore();
    await pull(store, sourceAt(`${server.url}/m.gguf`));
    const source = sourceAt(`${server.url}/other.gguf`);
    await expect(pull(store, source)).rejects.toThrow(
      `m is here already, from ${server.url}/m.gguf`,
    );
    const { model } = await pull(store, source, { force: true });
    expect(readFileSync(model.path).equals(other)).toBe(true);
    expect(model.files.map(({ name }) => name)).toEqual(["other.gguf"]);
  });
});

test("a journal keeps all others out, until it is given back", () => {
  using store = emptyStore();
  const first = store.tryLock("m");
  expect(first).toBeInstanceOf(Journal);
  expect(store.tryLock("m")).toBeUndefined();
  if (first !== undefined) store.release("m", first);
  const second = store.tryLock("m");
  expect(second).toBeInstanceOf(Journal);
  second?.remove();
});
