/** Downloads from a server that misbehaves, from its first byte to a model in the store. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileAnswer, FileServer, type Answer, type Asked } from "../helpers/file-server.ts";
import { forgeSplit } from "../helpers/gguf-forge.ts";
import {
  emptyStore,
  forgeModel,
  modelBytes,
  pull,
  retrying,
  sha256,
  sourceAt,
} from "./pull-setup.ts";

const mebibyte = 1 << 20;
const good = (asked: Asked) => fileAnswer(modelBytes, asked);
/** Whether this asks for the model itself, and not for its first bytes. */
const isPiece = ({ range }: Asked) => range !== undefined && range.end - range.start > 1024;

/** Pulls and looks at every byte. */
async function pulled(
  behave: (asked: Asked) => Answer,
  known: { sha256?: string } = { sha256: sha256(modelBytes) },
) {
  await using server = await FileServer.start(behave);
  using store = emptyStore();
  const pauses: string[] = [];
  const { model } = await pull(store, sourceAt(`${server.url}/m.gguf`, known), {
    onPause: (reason) => pauses.push(reason),
  });
  expect(readFileSync(model.path).equals(modelBytes)).toBe(true);
  expect(readdirSync(join(store.folder, ".partial"))).toEqual([]);
  return { model, pauses, asked: server.asked };
}

/** The message of a pull that must fail; nothing may be in the store. */
async function refused(
  behave: (asked: Asked) => Answer,
  known: { sha256?: string; sizeBytes?: number } = {},
): Promise<string> {
  await using server = await FileServer.start(behave);
  using store = emptyStore();
  const outcome = await pull(store, sourceAt(`${server.url}/m.gguf`, known)).catch(
    (error: unknown) => error,
  );
  expect(store.list()).toEqual([]);
  expect(outcome).toBeInstanceOf(Error);
  return String((outcome as Error).message).replaceAll(server.url, "SERVER");
}

describe("a server that serves", () => {
  test("gives the file in pieces, over several connections", async () => {
    const { model, asked, pauses } = await pulled(good);
    expect(asked.filter(isPiece).map(({ range }) => range?.start)).toEqual(
      [0, 1, 2, 3, 4, 5].map((i) => i * mebibyte),
    );
    expect(pauses).toEqual([]);
    expect(model.files).toEqual([
      { name: "m.gguf", bytes: modelBytes.length, sha256: sha256(modelBytes) },
    ]);
  });

  test("without ranges gives it in one stream", async () => {
    const { asked } = await pulled(({ range: _ignored, ...asked }) =>
      fileAnswer(modelBytes, { ...asked, range: undefined }),
    );
    expect(asked).toHaveLength(2);
  });

  test("without ranges and without a length gives it, too", async () => {
    await pulled(() => ({ status: 200, body: modelBytes }));
  });

  test("that first gives ranges and then ignores them is taken from the beginning", async () => {
    await pulled((asked) => (isPiece(asked) ? good({ ...asked, range: undefined }) : good(asked)));
  });

  test("is asked for no compression", async () => {
    const { asked } = await pulled(good);
    expect(new Set(asked.map(({ headers }) => headers["accept-encoding"]))).toEqual(
      new Set(["identity"]),
    );
  });

  test("of no known hash is taken at its word", async () => {
    const { model } = await pulled(good, {});
    expect(model.files[0]?.sha256).toBeUndefined();
  });

  test("names the hash in a redirect, as the hub does", async () => {
    const { model } = await pulled((asked) => {
      if (asked.path === "/cdn") return good(asked);
      const linked = `"${sha256(modelBytes)}"`;
      return { status: 302, headers: { location: "/cdn", "x-linked-etag": linked } };
    }, {});
    expect(model.files[0]?.sha256).toBe(sha256(modelBytes));
  });
});

describe("a connection", () => {
  test("that is cut, again and again, is made anew and goes on where it ended", async () => {
    const { asked, pauses } = await pulled((one) => {
      const answer = good(one);
      return isPiece(one) && one.index % 2 === 0 ? { ...answer, cutAfter: 300_000 } : answer;
    });
    expect(pauses.length).toBeGreaterThan(2);
    expect(asked.some(({ range }) => range !== undefined && range.start % mebibyte !== 0)).toBe(
      true,
    );
  });

  test("that is cut at once every time is given up", async () => {
    const message = await refused((asked) =>
      isPiece(asked) ? { ...good(asked), cutAfter: 0 } : good(asked),
    );
    expect(message).toStartWith("SERVER/m.gguf: ");
  });

  test("that falls silent is made anew", async () => {
    let isFirst = true;
    const { pauses } = await pulled((asked) => {
      if (!isPiece(asked) || !isFirst) return good(asked);
      isFirst = false;
      return { ...good(asked), silentAfter: 1000 };
    });
    expect(pauses).toEqual([expect.stringMatching(/^127\.0\.0\.1:\d+: nothing came for 0\.3 s$/)]);
  });

  test("without ranges that is cut begins anew", async () => {
    const { asked } = await pulled((one) => ({
      status: 200,
      headers: { "content-length": modelBytes.length },
      body: modelBytes,
      ...(one.index < 3 && { cutAfter: 2 * mebibyte }),
    }));
    expect(asked.length).toBe(4);
  });
});

describe("a server that lies", () => {
  test("sending less than it promises is asked again", async () => {
    const { pauses } = await pulled((asked) => {
      const answer = good(asked);
      if (asked.index !== 1) return answer;
      const { "content-length": _unsaid, ...headers } = answer.headers ?? {};
      return { ...answer, headers, body: answer.body?.slice(0, 500_000) ?? "" };
    });
    expect(pauses).toEqual(["the server sends less than it promises"]);
  });

  test("sending more than it was asked for is asked again", async () => {
    const { pauses } = await pulled((asked) => {
      const answer = good(asked);
      if (asked.index !== 1) return answer;
      const headers = { ...answer.headers, "content-length": modelBytes.length };
      return { ...answer, headers, body: modelBytes };
    });
    expect(pauses).toEqual(["the server sends more than it was asked for"]);
  });

  test("sending another part is asked again", async () => {
    const { pauses } = await pulled((asked) => {
      if (asked.index !== 2 || asked.range === undefined) return good(asked);
      const { start, end } = asked.range;
      return good({ ...asked, range: { start: start - 10, end: end - 10 } });
    });
    expect(pauses).toEqual(["the server sends another part than it was asked for"]);
  });

  test("damaging a byte is found out by the hash, and nothing of it stays", async () => {
    const damaged = modelBytes.slice();
    damaged[3_000_000] = (damaged[3_000_000] ?? 0) ^ 1;
    const known = { sha256: sha256(modelBytes) };
    const message = await refused((asked) => fileAnswer(damaged, asked), known);
    expect(message).toBe(
      `m.gguf arrived damaged: its sha256 is ${sha256(damaged)}, not ${known.sha256}`,
    );
  });

  test("serving a file of another size than the known one is refused at once", async () => {
    expect(await refused(good, { sizeBytes: 1_000_000 })).toBe(
      `SERVER/m.gguf is another file than it should be: bytes ${modelBytes.length}, not 1000000`,
    );
  });

  test("replacing the file in the middle is found out", async () => {
    const other = forgeModel(2);
    const message = await refused((asked) =>
      asked.index < 3 ? good(asked) : fileAnswer(other, asked, '"v2"'),
    );
    expect(message).toBe("SERVER/m.gguf changed while it was downloaded");
  });

  test("cutting the file behind its head is found out, also without a hash", async () => {
    const message = await refused((asked) => fileAnswer(modelBytes.subarray(0, 4_000_000), asked));
    expect(message).toContain("SERVER/m.gguf");
    expect(message).not.toContain(".partial");
  });
});

describe("what is no model", () => {
  const page = "<!DOCTYPE html><html><body>Please log in</body></html>";

  test.each<[string, Answer, string]>([
    ["a page", { status: 200, headers: { "content-type": "text/html" }, body: page }, "a web page"],
    ["an error in JSON", { status: 200, body: '{"error":"no"}' }, "JSON"],
    ["nothing", { status: 200, headers: { "content-length": 0 } }, "empty"],
    ["a range of nothing", { status: 416, headers: { "content-range": "bytes */0" } }, "empty"],
  ])("%s is named", async (_name, answer, word) => {
    const message = await refused(() => answer);
    expect(message.toLowerCase()).toContain(word.toLowerCase());
    expect(message).toContain("SERVER/m.gguf");
  });
});

describe("a status", () => {
  test.each<[number, string]>([
    [401, "SERVER/m.gguf: access is denied (401)"],
    [403, "SERVER/m.gguf: access is denied (403)"],
    [404, "SERVER/m.gguf: there is no such file (404)"],
    [410, "SERVER/m.gguf: there is no such file (410)"],
    [400, "SERVER/m.gguf: the server refuses (400)"],
    [429, "SERVER/m.gguf: too many requests (429)"],
    [503, "SERVER/m.gguf: the server fails (503)"],
  ])("%i ends it with a message", async (status, message) => {
    expect(await refused(() => ({ status, body: "no" }))).toBe(message);
  });

  test("429 is waited for, as long as the server says", async () => {
    const waits: number[] = [];
    await using server = await FileServer.start((asked) =>
      asked.index === 0 ? { status: 429, headers: { "retry-after": 0 } } : good(asked),
    );
    using store = emptyStore();
    await pull(store, sourceAt(`${server.url}/m.gguf`), {
      onPause: (_reason, pauseMs) => waits.push(pauseMs),
    });
    expect(waits).toHaveLength(1);
  });

  test("429 with a wait of an hour is given up at once", async () => {
    const busy = { status: 429, headers: { "retry-after": 3600 } };
    await using server = await FileServer.start(() => busy);
    using store = emptyStore();
    const failed = pull(store, sourceAt(`${server.url}/m.gguf`));
    await expect(failed).rejects.toMatchObject({
      text: expect.stringContaining("the server asks to wait 3600 s"),
    });
    expect(server.asked).toHaveLength(1);
  });

  test("at the very beginning is given up soon, whatever the patience behind it", async () => {
    await using server = await FileServer.start(() => ({ status: 503 }));
    using store = emptyStore();
    const { timing } = retrying();
    const failed = pull(store, sourceAt(`${server.url}/m.gguf`), {
      timing: { ...timing, attempts: 100 },
    });
    await expect(failed).rejects.toThrow("the server fails (503)");
    expect(server.asked).toHaveLength(4);
  });

  test("in the middle of a download is waited for, too", async () => {
    await pulled((asked) => (asked.index === 3 ? { status: 502 } : good(asked)));
  });
});

describe("a redirect", () => {
  const to = (location: string): Answer => ({ status: 302, headers: { location } });

  test("is followed, several times", async () => {
    const next: Record<string, string> = { "/m.gguf": "/a", "/a": "/b", "/b": "/c" };
    const { asked } = await pulled((one) => {
      const location = next[one.path];
      return location === undefined ? good(one) : to(location);
    });
    expect(asked.slice(0, 4).map(({ path }) => path)).toEqual(["/m.gguf", "/a", "/b", "/c"]);
  });

  test("in circles is given up", async () => {
    expect(await refused(() => to("/m.gguf"))).toBe("SERVER/m.gguf redirects in circles");
  });

  test.each(["file:///etc/passwd", "ftp://127.0.0.1/m.gguf", "::"])(
    "to %s is not",
    async (place) => {
      const message = await refused(() => to(place));
      expect(message).toStartWith("SERVER/m.gguf");
    },
  );

  test("to another host does not carry the token there", async () => {
    await using other = await FileServer.start(good);
    await using server = await FileServer.start(() => to(`${other.url}/m.gguf`));
    using store = emptyStore();
    const access = { token: "hf_secret", origins: [server.url] };
    await pull(store, sourceAt(`${server.url}/m.gguf`), { access });
    expect(server.asked[0]?.headers["authorization"]).toBe("Bearer hf_secret");
    expect(other.asked.some(({ headers }) => "authorization" in headers)).toBe(false);
  });
});

describe("a model in parts", () => {
  const tensor = (name: string) => ({ name, dims: [8], type: "F32" as const });
  const parts = forgeSplit([], [[tensor("a")], [tensor("b")]]);
  const part = (asked: Asked) => {
    const index = Number(/-0000(\d)-of-00002/.exec(asked.path)?.[1]) - 1;
    return fileAnswer(parts[index] ?? new Uint8Array(), asked);
  };

  async function pullPart(behave: (asked: Asked) => Answer) {
    await using server = await FileServer.start(behave);
    using store = emptyStore();
    const source = sourceAt(`${server.url}/m-00002-of-00002.gguf`);
    const outcome = await pull(store, source).catch((error: Error) => error);
    return { outcome, url: server.url, folder: store.folder, names: store.list() };
  }

  test("comes whole, whichever part is named", async () => {
    const { outcome, folder } = await pullPart(part);
    expect(outcome).toMatchObject({
      model: {
        path: join(folder, "m/m-00001-of-00002.gguf"),
        files: [{ name: "m-00001-of-00002.gguf" }, { name: "m-00002-of-00002.gguf" }],
      },
    });
  });

  test("of which one is missing does not come at all", async () => {
    const { outcome, url, names } = await pullPart((asked) =>
      asked.path.includes("00002-of") ? { status: 404 } : part(asked),
    );
    expect(outcome).toHaveProperty(
      "message",
      `${url}/m-00002-of-00002.gguf: there is no such file (404)`,
    );
    expect(names).toEqual([]);
  });

  test("whose parts do not belong together is refused", async () => {
    const { outcome, names } = await pullPart((asked) => fileAnswer(parts[0] ?? modelBytes, asked));
    expect(outcome).toHaveProperty("kind", "model");
    expect(names).toEqual([]);
  });
});
