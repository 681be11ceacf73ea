/** Standard streams that are closed, full, slow or missing: quick ends and no noise. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { openSync } from "node:fs";
import {
  binary,
  cleanUp,
  ensureBuilt,
  environment,
  folder,
  noDriver,
  start,
  testTimeoutMs,
  zinc,
} from "../helpers/binary.ts";

setDefaultTimeout(testTimeoutMs);
afterAll(cleanUp);

/** Runs a line of the shell in which $zinc is the executable. */
async function shell(line: string) {
  ensureBuilt();
  const started = performance.now();
  const child = Bun.spawn(["/bin/sh", "-c", line], {
    cwd: folder,
    env: { ...environment, zinc: binary, PATH: "/usr/bin:/bin" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  expect(err).not.toMatch(/^\s+at /m);
  return { code, out, err, ms: performance.now() - started };
}

const story = '--prompt "Tell me a story about a fox" --ignore-eos --temp 0';

describe.skipIf(noDriver !== undefined)("stdout", () => {
  test("closed by its reader ends the run early and without a word", async () => {
    const { out, err, code } = await shell(
      `{ $zinc ${story} -c 2048; echo "code $?" >&2; } | head -c 10`,
    );
    expect({ length: out.length, code }).toEqual({ length: 10, code: 0 });
    expect(err).toEndWith("code 0\n");
    expect(err).not.toContain("EPIPE");
    // The whole context would be 2,000 tokens.
    expect(err).not.toContain("prompt tokens at");
  });

  test("closed by its reader ends --check, too", async () => {
    const { out, err } = await shell('{ $zinc --check; echo "code $?" >&2; } | head -n 1');
    expect(out).toStartWith("OK    host ");
    expect(err).toMatch(/^code [01]\n$/);
  });

  test("closed from the start is no failure", async () => {
    expect(await shell("$zinc --prompt Hi -n 2 --quiet >&-")).toMatchObject({ code: 0, err: "" });
    expect(await shell("$zinc --version >&- 2>&- <&-")).toMatchObject({ code: 0 });
  });

  test("on a full disk is a failure that says so", async () => {
    for (const args of [
      "--prompt Hi -n 2 --quiet",
      "--version",
      "--help",
      "devices",
      "model info",
    ]) {
      expect(await shell(`$zinc ${args} >/dev/full`)).toMatchObject({
        code: 1,
        err: "zinc: stdout cannot be written (ENOSPC); free some space on the disk\n",
      });
    }
  });

  test("that is slow gets everything", async () => {
    const { out } = await shell("$zinc logits --tokens 1,2,3 --all | { sleep 1; cat; }");
    const lists = JSON.parse(out) as number[][];
    expect(lists.map((list) => list.length)).toEqual([4096, 4096, 4096]);
  });
});

describe.skipIf(noDriver !== undefined)("stderr", () => {
  test("closed changes nothing", async () => {
    const { code, out } = await shell("$zinc --prompt 'What is 7 + 5?' --temp 0 2>&-");
    expect({ code, answered: out.includes("12") }).toEqual({ code: 0, answered: true });
  });

  test("that nobody reads changes nothing", async () => {
    const line = "{ $zinc --prompt 'What is 7 + 5?' --temp 0 2>&1 >&3 | true; } 3>&1";
    expect((await shell(line)).out).toContain("12");
  });

  test("closed does not hide the exit code of an error", async () => {
    expect(await shell("$zinc --bogus 2>&-")).toMatchObject({ code: 2, out: "" });
  });
});

describe.skipIf(noDriver !== undefined)("stdin", () => {
  test("closed, empty or missing leaves --prompt alone", async () => {
    for (const redirection of ["<&-", "</dev/null", ""]) {
      const { code, out } = await shell(
        `$zinc --prompt 'What is 7 + 5?' --temp 0 -q ${redirection}`,
      );
      expect({ code, answered: out.includes("12") }).toEqual({ code: 0, answered: true });
    }
  });

  test("closed or empty is an empty prompt without --prompt", async () => {
    for (const redirection of ["<&-", "</dev/null"]) {
      expect(await shell(`$zinc run ${redirection}`)).toMatchObject({
        code: 2,
        out: "",
        err: 'zinc: the prompt is empty; say something, as in --prompt "Hello"\n',
      });
    }
  });

  test("that is a folder is told", async () => {
    expect(await shell("$zinc --prompt Hi </")).toMatchObject({
      code: 2,
      err: "zinc: stdin cannot be read (EISDIR); pipe a text in\n",
    });
  });

  test("is read to its end, however slowly it comes", async () => {
    const { out } = await shell(
      "{ printf 'What is '; sleep 1; printf '7 + 5?'; } | $zinc --temp 0",
    );
    expect(out).toContain("12");
  });

  test("that stays open gets a reminder instead of silence", async () => {
    ensureBuilt();
    const child = Bun.spawn([binary, "--prompt", "What is 7 + 5?", "--temp", "0"], {
      cwd: folder,
      env: environment,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    const reader = child.stderr.getReader();
    const { value } = await reader.read();
    expect(new TextDecoder().decode(value)).toBe(
      "waiting for the end of stdin (none? add </dev/null)\n",
    );
    child.stdin.end();
    reader.releaseLock();
    expect(await new Response(child.stdout).text()).toContain("12");
    expect(await child.exited).toBe(0);
  });

  test("of a megabyte without a space is refused for its length, not for its size", async () => {
    const { code, err, ms } = await zinc(["run"], { stdin: "x".repeat(1 << 20) });
    expect(code).toBe(2);
    expect(err).toMatch(
      /zinc: the prompt has \d+ tokens and the context 2048; shorten the prompt /,
    );
    expect(ms).toBeLessThan(20_000);
  });
});

test("a file is as good as a pipe for both", async () => {
  ensureBuilt();
  const out = openSync("/dev/null", "w");
  const child = start(["tokenize"], { stdin: "Hello" });
  expect(await new Response(child.stdout).json()).toBeArray();
  const quiet = Bun.spawn([binary, "--version"], { stdout: out, stderr: "pipe", env: environment });
  expect(await quiet.exited).toBe(0);
});
