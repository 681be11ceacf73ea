/** Managed models as people use them: pulled, chosen, run by name, looked into and removed. */
import { afterAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  answer,
  cleanUp,
  json,
  noDriver,
  refusal,
  start,
  testTimeoutMs,
  write,
  zinc,
} from "../helpers/binary.ts";
import { fileAnswer, FileServer, type Answer, type Asked } from "../helpers/file-server.ts";
import { readUntil } from "../helpers/reading.ts";
import { session } from "../helpers/terminal.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

const spark = readFileSync(join(import.meta.dir, "../../src/builtin/spark.gguf"));
const sparkHash = new Bun.CryptoHasher("sha256").update(spark).digest("hex");
const good = (asked: Asked) => fileAnswer(spark, asked);
const isPiece = ({ range }: Asked) => range !== undefined && range.end - range.start > 1024;

const place = mkdtempSync(join(tmpdir(), "zinc-models-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

let count = 0;
let models = "";
let env: Record<string, string> = {};

beforeEach(() => {
  const folder = join(place, String(count++));
  models = join(folder, "models");
  env = { ZINC_MODELS: models, XDG_CONFIG_HOME: join(folder, "config"), NO_PROXY: "127.0.0.1" };
});

const hasSpark = () => readFileSync(join(models, "m/m.gguf")).equals(spark);

describe("a pulled model", () => {
  test("is listed, chosen, run by its name, and removed", async () => {
    await using server = await FileServer.start(good);
    const url = `${server.url}/m.gguf`;
    expect(await json<object>(["model", "pull", url, "--json"], { env })).toEqual({
      name: "m",
      path: join(models, "m/m.gguf"),
      bytes: spark.length,
      source: url,
      files: [{ name: "m.gguf", bytes: spark.length }],
      isNew: true,
    });
    const { err } = await zinc(["model", "pull", url, "--use"], { env });
    expect(err).toBe("m is here already, 5.38 MB\nm is used where no model is named\n");
    expect(await answer(["model", "active"], { env })).toBe("m\n");
    const { file, managed } = await json<Record<string, unknown>>(["model", "info", "--json"], {
      env,
    });
    expect({ file, managed }).toEqual({ file: join(models, "m/m.gguf"), managed: "m" });
    expect(await answer(["model", "info", "spark"], { env })).toContain("spark (built in)");
    const byName = await answer(["tokenize", "-m", "M"], { env, stdin: "Hello" });
    expect(byName).toBe(await answer(["tokenize"], { env, stdin: "Hello" }));
    expect(await refusal(1, ["model", "rm", "m"], { env })).toBe(
      "m is the active model; choose another with zinc model use, or give --force",
    );
    expect((await zinc(["model", "rm", "m", "--force"], { env })).err).toBe("m is removed\n");
    expect(await answer(["model", "active"], { env })).toBe("spark\n");
    expect(readdirSync(models)).toEqual([".partial"]);
  });

  test.skipIf(noDriver !== undefined)("answers, and the list says that it fits", async () => {
    const path = write("mine.gguf", spark);
    await answer(["model", "pull", path, "--name", "mine"], { env });
    const run = ["-m", "mine", "--prompt", "What is 7 + 5?", "--temp", "0"];
    expect(await answer(run, { env })).toContain("12");
    const list = await json<{ models: Record<string, unknown>[] }>(["model", "list", "--json"], {
      env,
    });
    expect(list.models.find(({ name }) => name === "mine")).toEqual({
      name: "mine",
      title: null,
      source: path,
      bytes: spark.length,
      installed: true,
      active: false,
      partial: null,
      fits: "yes",
      path: expect.stringContaining(join(models, "mine")),
    });
    const text = await answer(["model", "list"], { env });
    expect(text).toMatch(/^ {3}NAME +SIZE +HERE +FITS +MODEL\n\* {2}spark +– +yes +yes +the small/);
    expect(text).toMatch(/\n {3}llama-3\.1-8b +4\.92 GB +– +(yes|no) +Llama 3\.1 8B Instruct/);
  });

  test("that is chosen and gone is an error that says what to do", async () => {
    await answer(["model", "pull", write("m.gguf", spark), "--name", "m", "--use"], { env });
    rmSync(join(models, "m"), { recursive: true });
    expect(await refusal(3, ["tokenize"], { env, stdin: "x" })).toBe(
      `the active model m is not in ${models}; ` +
        "zinc model pull m fetches it, and zinc model use chooses another",
    );
  });
});

describe("a name", () => {
  test.each([
    ["qwen3.5-2b", "qwen3.5-2b is not downloaded yet; zinc model pull qwen3.5-2b downloads it"],
    ["qwen3.5-2", "there is no model or file qwen3.5-2; did you mean qwen3.5-2b?"],
    ["nonsense", "there is no model or file nonsense; zinc model list shows the names"],
  ])("%s", async (name, message) => {
    expect(await refusal(3, ["tokenize", "-m", name], { env, stdin: "x" })).toBe(message);
    expect(await refusal(3, ["model", "use", name], { env })).toBe(message);
  });
});

describe("a download that is interrupted", () => {
  /** Serves all but the last pieces, which fall silent, until it is told to go on. */
  async function stuck() {
    let isStuck = true;
    const server = await FileServer.start((asked) =>
      isStuck && (asked.range?.start ?? 0) >= 2 << 20
        ? { ...good(asked), silentAfter: 500_000 }
        : good(asked),
    );
    const goOn = () => {
      isStuck = false;
      server.asked.length = 0;
    };
    return { server, goOn };
  }

  /** Waits until all connections hang. */
  async function hanging(server: FileServer): Promise<void> {
    while (server.asked.filter(isPiece).length < 6) await Bun.sleep(20);
    await Bun.sleep(300);
  }

  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("by %s goes on where it ended", async (signal, code) => {
    const { server, goOn } = await stuck();
    await using _closed = server;
    const args = ["model", "pull", `${server.url}/m.gguf`];
    const child = start(args, { env });
    await hanging(server);
    const sent = performance.now();
    child.kill(signal);
    expect(await child.exited).toBe(code);
    expect(performance.now() - sent).toBeLessThan(3000);
    expect(await new Response(child.stderr).text()).toBe(
      "interrupted; the same command goes on where this one ended\n",
    );
    expect(await answer(["model", "list"], { env })).toMatch(/ m +5\.38 MB +[67]\d% /);
    goOn();
    await answer(args, { env });
    expect(hasSpark()).toBe(true);
    const asked = server.asked.filter(isPiece).map(({ range }) => range?.end ?? 0);
    expect(asked.every((end) => end > 2 << 20)).toBe(true);
    const starts = server.asked.filter(isPiece).map(({ range }) => (range?.start ?? 0) % (1 << 20));
    expect(starts.filter((start) => start === 500_000).length).toBeGreaterThan(0);
  });

  test("by a crash goes on, too", async () => {
    const { server, goOn } = await stuck();
    await using _closed = server;
    const args = ["model", "pull", `${server.url}/m.gguf`];
    const child = start(args, { env });
    await hanging(server);
    // Until it is recorded what is there.
    await Bun.sleep(2500);
    child.kill("SIGKILL");
    await child.exited;
    goOn();
    await answer(args, { env });
    expect(hasSpark()).toBe(true);
    expect(server.asked.filter(isPiece).every(({ range }) => (range?.start ?? 0) > 1 << 20)).toBe(
      true,
    );
  });

  test("is removed by rm", async () => {
    const { server } = await stuck();
    await using _closed = server;
    const child = start(["model", "pull", `${server.url}/m.gguf`], { env });
    await hanging(server);
    expect(await refusal(1, ["model", "rm", "m"], { env })).toBe(
      "m is being downloaded by another process; stop that first",
    );
    child.kill("SIGINT");
    await child.exited;
    await answer(["model", "rm", "m"], { env });
    expect(readdirSync(join(models, ".partial"))).toEqual([]);
  });

  test("shares its work with a second one that was started beside it", async () => {
    const { server, goOn } = await stuck();
    await using _closed = server;
    const args = ["model", "pull", `${server.url}/m.gguf`];
    const first = start(args, { env });
    await hanging(server);
    const second = start(args, { env });
    const said = await readUntil(second.stderr.getReader(), /\n/);
    expect(said).toStartWith("another zinc has this model at work; waiting for it\n");
    goOn();
    first.kill("SIGINT");
    expect(await first.exited).toBe(130);
    expect(await second.exited).toBe(0);
    expect(hasSpark()).toBe(true);
  });
});

describe("what goes wrong", () => {
  const html = '<!DOCTYPE html><html lang="en">Log in</html>';

  test.each<[string, number, Answer, string]>([
    ["401", 1, { status: 401 }, "access is denied (401); check the name; for a gated or private"],
    ["404", 3, { status: 404 }, "there is no such file (404); check the name"],
    ["a page", 3, { status: 200, body: html }, "is not GGUF: it looks like a web page"],
    [
      "a wait of an hour",
      1,
      { status: 429, headers: { "retry-after": 3600 } },
      "too many requests (429); the server asks to wait 3600 s",
    ],
  ])("%s has exit code %i", async (_name, code, said, message) => {
    await using server = await FileServer.start(() => said);
    expect(await refusal(code, ["model", "pull", `${server.url}/m.gguf`], { env })).toContain(
      message,
    );
  });

  test("damage on the way to a file whose hash the hub tells", async () => {
    const damaged = spark.map((byte, i) => (i === 4_000_000 ? byte ^ 1 : byte));
    const list = [
      { type: "file", path: "m-Q4_K_M.gguf", size: spark.length, lfs: { oid: sparkHash } },
    ];
    await using server = await FileServer.start((asked) =>
      asked.path.startsWith("/api/")
        ? { status: 200, body: JSON.stringify(list) }
        : fileAnswer(damaged, asked),
    );
    const hub = { ...env, HF_ENDPOINT: server.url };
    expect(await refusal(3, ["model", "pull", "hf:o/r"], { env: hub })).toMatch(
      /^m-Q4_K_M\.gguf arrived damaged: its sha256 is \w{64}, not \w{64}; it was removed; give/,
    );
    server.behave = (asked) =>
      asked.path.startsWith("/api/") ? { status: 200, body: JSON.stringify(list) } : good(asked);
    const { err } = await zinc(["model", "pull", "hf:o/r:Q4_K_M"], { env: hub });
    expect(err).toBe("m-q4_k_m: 5.38 MB, sha256 is right\n");
  });

  test("another file where a listed one should be", async () => {
    await using server = await FileServer.start(good);
    const hub = { ...env, HF_ENDPOINT: server.url };
    expect(await refusal(3, ["model", "pull", "qwen3-0.6b"], { env: hub })).toContain(
      "is another file than it should be: bytes 5377184, not 639446688",
    );
    expect(server.asked[0]?.path).toBe("/Qwen/Qwen3-0.6B-GGUF/resolve/main/Qwen3-0.6B-Q8_0.gguf");
  });

  test("a token reaches the hub alone, and no message", async () => {
    await using other = await FileServer.start(() => ({ status: 403 }));
    await using hub = await FileServer.start(() => ({
      status: 302,
      headers: { location: `${other.url}/m.gguf` },
    }));
    const withToken = { ...env, HF_ENDPOINT: hub.url, HF_TOKEN: "hf_secret" };
    const { code, err } = await zinc(["model", "pull", "hf:o/r/m.gguf"], { env: withToken });
    expect(code).toBe(1);
    expect(err).not.toContain("hf_secret");
    expect(hub.asked[0]?.headers["authorization"]).toBe("Bearer hf_secret");
    expect(other.asked[0]?.headers["authorization"]).toBeUndefined();
  });

  test.skipIf(!mayMount())("a disk that is full, and room that is made on it", async () => {
    await using server = await FileServer.start(good);
    mkdirSync(models, { recursive: true });
    mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", models);
    try {
      const args = ["model", "pull", `${server.url}/m.gguf`];
      expect(await refusal(1, args, { env })).toMatch(
        /^m needs 5\.38 MB more, and .* has .* free; free some space, or set ZINC_MODELS to/,
      );
      // A server that does not tell the size: the disk is full in the middle.
      server.behave = () => ({ status: 200, body: spark });
      expect(await refusal(1, args, { env })).toMatch(
        /m\.gguf cannot be written: the disk is full; free some space; the same command then goes/,
      );
      mount("-o", "remount,size=20m", models);
      await answer(args, { env });
      expect(hasSpark()).toBe(true);
    } finally {
      Bun.spawnSync(["umount", models]);
    }
  });
});

test("a terminal shows a bar with speed and time, and nothing stays of it", async () => {
  await using server = await FileServer.start(good);
  server.behave = (asked) =>
    asked.range?.start === 2 << 20 && asked.index < 8
      ? { ...good(asked), cutAfter: 700_000 }
      : good(asked);
  const line = `$zinc model pull ${server.url}/m.gguf`;
  const { screen, code } = await session(line, env);
  expect(code).toBe(0);
  expect(screen).toMatch(/[█░]{24} downloading m \d+% of 5\.38 MB, [\d.]+ [kMG]B\/s/);
  expect(screen).toEndWith("\r\u001b[Km: 5.38 MB, no sha256 is known for it\n");
});

function mount(...args: readonly string[]): boolean {
  return Bun.spawnSync(["mount", ...args]).success;
}

/** Only root may, and not in every container. */
function mayMount(): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  const folder = mkdtempSync(join(tmpdir(), "zinc-mount-"));
  const isAllowed = mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder);
  if (isAllowed) Bun.spawnSync(["umount", folder]);
  rmSync(folder, { recursive: true });
  return isAllowed;
}
